"""The encoding of a text is found by its bytes, and a text goes back into it."""

# ruff: noqa: RUF001 - the letters of other scripts are what is tested

import random

import pytest

from proofbox.service.text_encoding import SNIFFED_BYTES, as_utf_8, decode_text, encode_text, find_encoding

TEXTS = {
    "utf-8": ["", "a", "Müller", "中文", "\ufeffName;Ort"],
    "utf-16": ["name,zahl\nMüller,1\n", "中文测试"],
    "utf-16-le": ["name,zahl\nMüller,1\n", "Привет, мир\nещё строка\n"],
    "utf-16-be": ["name,zahl\nMüller,1\n"],
    "utf-32": ["Müller"],
    "cp1252": ["Name;Ort\r\nMüller;Köln\r\n", "It’s a “test” of café", "l’été créée à Noël", "España, año, niño",
               "MÜLLER;KÖLN", "ÄÖÜ", "é", "Ångström på Malmö", "São João não é", "€5;£6", "þú ert góður á Íslandi"],
    "cp1250": ["Zażółć gęślą jaźń", "Příliš žluťoučký kůň", "imię;miasto\nŁukasz;Łódź"],
    "cp1254": ["Türkçe dışişleri şğı İstanbul"],
    "cp1251": ["Имя;Город\r\nИванов;Москва\r\n", "Привет, мир", "ИМЯ;ГОРОД", "Київ є столицею України", "да"],
    "koi8_r": ["Имя;Город\r\nИванов;Москва\r\n", "привет всем людям на земле"],
    "cp866": ["Имя;Город\r\nИванов;Москва\r\n"],
    "cp1253": ["Καλημέρα κόσμε", "Όνομα;Πόλη\nΓιώργος;Αθήνα"],
    "cp1255": ["שלום עולם"],
    "cp1256": ["مرحبا بالعالم"],
    "cp932": ["名前,年齢\n山田太郎,30\n", "これはテストです。日本語の文章", "東京都", "売上高（百万円）",
              "ﾃｽﾄ,名前"],
    "euc_jp": ["これはテストです。日本語の文章"],
    "gb18030": ["姓名,城市\n王伟,北京\n", "中文", "上海市浦东新区"],
    "big5": ["姓名,城市\n王偉,臺北\n", "這是一個測試檔案"],
    "cp949": ["이름,도시\n김철수,서울\n"],
}  # fmt: skip


@pytest.mark.parametrize(("encoding", "text"), [(name, text) for name, texts in TEXTS.items() for text in texts])
def test_a_text_is_read_in_its_encoding_and_goes_back_byte_for_byte(encoding, text):
    data = text.encode(encoding)
    found = find_encoding(data)
    assert found is not None
    assert decode_text(data, found) == text
    assert encode_text(text, found, data) == data
    assert as_utf_8(data, is_whole=True) == (text.encode(), found)


@pytest.mark.parametrize("order", ["le", "be"])
def test_a_mark_of_utf_16_stays_in_its_order(order):
    data = "\ufeffMüller".encode(f"utf-16-{order}")
    assert encode_text("Möller", find_encoding(data), data) == "\ufeffMöller".encode(f"utf-16-{order}")


@pytest.mark.parametrize("encoding", ["utf-16", "cp1252", "gb18030", "cp932", "cp1251"])
def test_a_cut_text_of_any_size_is_read_up_to_its_last_whole_character(encoding):
    text = {"gb18030": "中文,测试\n", "cp932": "日本語,テスト\n", "cp1251": "Привет,мир\n"}.get(
        encoding, "Köln,Müller\n"
    ) * 9000
    data = text.encode(encoding)
    for size in (SNIFFED_BYTES - 1, SNIFFED_BYTES, SNIFFED_BYTES + 1, 20_484, 20_485):
        shown, found = as_utf_8(data[:size], is_whole=False)
        assert (found, text.startswith(shown.decode())) == (encoding, True)


@pytest.mark.parametrize(
    "data",
    [
        b"\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR",
        bytes(range(256)),
        random.Random(1).randbytes(3_000),
        b"\xff\xfe\x00\xd8",
    ],
)
def test_what_is_no_text_has_no_encoding(data):
    assert find_encoding(data) is None


def test_a_broken_utf_8_text_stays_one():
    data = "Müller aus Köln, ".encode() * 3 + b"\xff"
    assert as_utf_8(data, is_whole=True) == (data, "utf-8")
