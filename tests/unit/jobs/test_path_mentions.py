"""What a text refers to: every spelling of files and citations, and nothing that hostile text could make slow."""

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proofbox.contracts.paths import FilePath, Namespace
from proofbox.service.jobs.file_aliases import turns_named
from proofbox.service.jobs.path_mentions import MENTIONS_MAX, find_mentions, find_sids

T = "turn_2026-07-04-13-18-11-048"


def only(text):
    [mention] = find_mentions(text)
    return mention


@pytest.mark.parametrize(
    ("text", "rel"),
    [
        # quoted
        ("open('turn_1/files/a.csv')", "a.csv"),
        ('open("turn_1/files/a b.csv")', "a b.csv"),
        ("`turn_1/files/a.csv`", "a.csv"),
        ('Path("turn_1/files/x/y z/a (2).csv")', "x/y z/a (2).csv"),
        ('"turn_1/files/it\'s.csv"', "it's.csv"),
        ('"turn_1/files/a.csv', "a.csv"),
        # prefixes
        ("'./turn_1/files/a.csv'", "a.csv"),
        ("'../turn_1/files/a.csv'", "a.csv"),
        ("'/out/turn_1/files/a b.csv'", "a b.csv"),
        ('f"{OUT_DIR}/turn_1/files/a b.csv"', "a b.csv"),
        ('"$OUT_DIR/turn_1/files/a b.csv"', "a b.csv"),
        ('f"{os.environ["OUT_DIR"]}/turn_1/files/a b.csv"', "a b.csv"),
        # bare: shell, HTML attributes, prose
        ("cat turn_1/files/a.csv | sort", "a.csv"),
        ("cat turn_1/files/a.csv;", "a.csv"),
        ("sort <turn_1/files/a.csv>b", "a.csv"),
        ("<img src=turn_1/files/a.png>", "a.png"),
        ("<img src=turn_1/files/a.png/>", "a.png"),
        ("<img src=turn_1/files/a.png alt=x>", "a.png"),
        ("see turn_1/files/a.csv.", "a.csv"),
        ("see turn_1/files/a.csv, then", "a.csv"),
        ("(see turn_1/files/a.csv)", "a.csv"),
        ("is it turn_1/files/a.csv?!", "a.csv"),
        ("end turn_1/files/a.csv", "a.csv"),
        # HTML and CSS
        ('<img src="turn_1/files/a b.png">', "a b.png"),
        ("<img src='turn_1/files/a.png' alt='x'>", "a.png"),
        ("background: url(turn_1/files/a.png) no-repeat", "a.png"),
        ("background: url( turn_1/files/a.png )", "a.png"),
        ("background: url('turn_1/files/a b.png')", "a b.png"),
        # Markdown
        ("![chart](turn_1/files/a.png)", "a.png"),
        ("![chart](turn_1/files/a b (2).png)", "a b (2).png"),
        ("![chart](./turn_1/files/a(1).png)", "a(1).png"),
        ("![chart](<turn_1/files/a b.png>)", "a b.png"),
        ('![chart](turn_1/files/a.png "The chart")', "a.png"),
        ("![chart](turn_1/files/a b.png 'The chart')", "a b.png"),
        # query, fragment, percent
        ('"turn_1/files/a.png?v=2"', "a.png"),
        ('"turn_1/files/a.pdf#page=2"', "a.pdf"),
        ('"turn_1/files/a.pdf?x=1#page=2"', "a.pdf"),
        ("[x](turn_1/files/a%20b.png)", "a b.png"),
        ("[x](turn_1/files/%D0%BE%D1%82.png)", "от.png"),
        ("[x](turn_1/files/%d0%be%d1%82.png)", "от.png"),
        # names that look like other things
        ("'turn_1/files/cafe\u0301.csv'", "café.csv"),
        ("'turn_1/files/日本.csv'", "日本.csv"),
        ("'turn_1/files/turn_2.csv'", "turn_2.csv"),
    ],
)
def test_a_file_is_read_in_every_spelling_that_models_write(text, rel):
    mention = only(text)
    assert (mention.turn_id, mention.namespace, mention.pattern) == ("turn_1", Namespace.FILES, None)
    assert rel in mention.readings
    assert unicodedata.normalize("NFC", mention.asked) == f"turn_1/files/{rel}"


@pytest.mark.parametrize(
    ("text", "asked"),
    [
        ("see turn_1/files/a.csv, then", "turn_1/files/a.csv"),
        ('open("turn_1/files/a b.csv")', "turn_1/files/a b.csv"),
        ('"turn_1/files/a%20b.png?v=2"', "turn_1/files/a b.png"),
        ('![x](turn_1/files/a.png "The chart")', "turn_1/files/a.png"),
        ("f'turn_1/files/{name}.csv'", "turn_1/files/{name}.csv"),
        ("'turn_1/files'", "turn_1/files"),
    ],
)
def test_what_was_asked_is_the_likeliest_path(text, asked):
    assert only(text).asked == asked


def test_the_readings_of_a_mention_stand_with_the_likeliest_first():
    assert only('"turn_1/files/a b.csv?x"').readings == ("a b.csv?x", "a b.csv", "a")
    assert only("see turn_1/files/a.csv).").readings == ("a.csv", "a.csv)", "a.csv).")


def test_srcset_is_a_list_of_files_and_not_one():
    text = '<img srcset="turn_1/files/a.png 1x, turn_1/files/b.png 2x">'
    assert [(m.asked, m.readings[0]) for m in find_mentions(text)] == [
        ("turn_1/files/a.png", "a.png"),
        ("turn_1/files/b.png", "b.png"),
    ]


@pytest.mark.parametrize(
    ("text", "turn_id", "namespace"),
    [
        ("'turn_1/attachments/a.csv'", "turn_1", Namespace.ATTACHMENTS),
        (f"'{T}/files/a.csv'", T, Namespace.FILES),
        ("'turn_a.b.files/files/a.csv'", "turn_a.b.files", Namespace.FILES),
        ("'./turn_x.y/attachments/a.csv'", "turn_x.y", Namespace.ATTACHMENTS),
    ],
)
def test_turn_and_namespace_are_read_with_their_dots_and_dashes(text, turn_id, namespace):
    mention = only(text)
    assert (mention.turn_id, mention.namespace, mention.readings) == (turn_id, namespace, ("a.csv",))


@pytest.mark.parametrize(
    "text",
    [
        "os.listdir('turn_1/files')",
        "os.listdir('turn_1/files/')",
        "ls turn_1/files/",
        "ls turn_1/files",
        "all of turn_1/files.",
        "all of turn_1/files, please",
        "'turn_1/files/ '",
        "'turn_1/files//'",
        "'turn_1/files/\t'",
    ],
)
def test_a_folder_is_a_mention_without_readings(text):
    mention = only(text)
    assert (mention.asked, mention.readings, mention.pattern) == ("turn_1/files", (), None)


@pytest.mark.parametrize(
    ("text", "pattern"),
    [
        ("f'turn_1/files/{name}.csv'", "*.csv"),
        ("f'turn_1/files/{names[0]}/{i:02d}.csv'", "*/*.csv"),
        ("'turn_1/files/%s.csv' % name", "*.csv"),
        ("'turn_1/files/part-%d.csv' % 3", "part-*.csv"),
        ("'turn_1/files/part-%02d.csv' % 3", "part-*.csv"),
        ("cat turn_1/files/$NAME.csv", "*.csv"),
        ("cat turn_1/files/${NAME}", "*"),
        ("glob('turn_1/files/*.csv')", "*.csv"),
        ("glob('turn_1/files/**/*.csv')", "**/*.csv"),
        ("cat turn_1/files/*.csv;", "*.csv"),
        ("cat turn_1/files/a[0-9]", "a[0-9]"),
        ("cat turn_1/files/{a,b}.csv", "*.csv"),
    ],
)
def test_a_wildcard_or_a_placeholder_is_a_pattern(text, pattern):
    assert only(text).pattern == pattern


def test_a_name_with_brackets_is_a_reading_and_a_pattern():
    mention = only("'turn_1/files/report [final].csv'")
    assert (mention.readings[0], mention.pattern) == ("report [final].csv", "report [final].csv")


@pytest.mark.parametrize(
    "text",
    [
        "",
        "turn_1",
        "turn_1/other/a",
        "turn_1/files_old/a",
        "turn_1/filesystem",
        "return_1/files/a",
        "x.turn_1/files/a",
        "turn_/files/a",
        "Turn_1/files/a",
        "files/a.csv",
        "fi:turn_1.files/a",
        f"turn_{'1' * 251}/files/a",
    ],
)
def test_other_text_is_no_mention(text):
    assert find_mentions(text) == []


def test_a_path_that_leaves_its_turn_has_no_readings_of_other_places():
    assert only("'turn_1/files/../../etc/passwd'").readings == ()
    assert only("'turn_1/files/..%2f..%2fetc'").readings == ("..%2f..%2fetc",)


def test_a_file_that_is_named_twice_is_one_mention():
    text = "open('turn_1/files/a.csv'); open('turn_1/files/a.csv'); open('turn_2/files/a.csv')"
    assert [mention.turn_id for mention in find_mentions(text)] == ["turn_1", "turn_2"]


def test_only_so_many_places_of_a_text_are_looked_at():
    text = "".join(f"'turn_1/files/{number}'\n" for number in range(MENTIONS_MAX + 5))
    found = find_mentions(text)
    assert (len(found), found[-1].asked) == (MENTIONS_MAX, f"turn_1/files/{MENTIONS_MAX - 1}")


TOKENS = st.one_of(
    st.sampled_from(
        ["turn_1/files/", "turn_a.b/attachments/", "turn_1", "files", "./", "../", "a.csv", "$x", "%d"]
    ),
    st.sampled_from(["%2", "%2e", "\udc80", "é", "\n", "\0"]),
    st.sampled_from("/{}[]*%?#()<>\"'` =\\,"),
)


@given(st.lists(st.one_of(TOKENS, st.text(max_size=5)), max_size=30).map("".join))
def test_any_text_has_mentions_of_safe_paths_only(text):
    for mention in find_mentions(text):
        for rel in mention.readings:
            assert FilePath(mention.turn_id, mention.namespace, rel).rel == rel


@given(st.from_regex(r"[A-Za-z0-9_]([A-Za-z0-9_ .-]*[A-Za-z0-9_])?(/[A-Za-z0-9_]+){0,3}", fullmatch=True))
def test_a_quoted_plain_name_is_always_its_own_likeliest_reading(rel):
    for text in (f'open("turn_1/files/{rel}")', f"x = './turn_1/files/{rel}'", f"[x](turn_1/files/{rel})"):
        assert only(text).readings[0] == rel


# A megabyte each. Quadratic work would take minutes and the run's own time limit would end it.
@pytest.mark.deep
@pytest.mark.parametrize(
    "text",
    [
        "turn_a/files/" * 80_000,
        ("turn_a/files/" + ")" * 1_000) * 1_000,
        ("'turn_a/files/" + "%41/" * 250 + "'") * 1_000,
        ("(turn_a/files/a" + " " * 1_000 + ")") * 1_000,
        ("turn_a/files/" + "{" * 1_000) * 1_000,
        ("turn_a/files/" + "[" * 1_000) * 1_000,
        "turn_" + "a" * 1_000_000,
        "turn_" * 200_000,
        "turn_a/" * 150_000,
        "turn_a/files" + "-" * 1_000_000,
        "(" * 500_000 + "turn_a/files/" + ")" * 500_000,
        "[[S:" + " " * 1_000_000,
        "[[S:" * 250_000,
        "[[S:" + "1," * 500_000 + "]]",
        ("[[S:" + "1 - " * 1_000) * 250,
        "[[" + " " * 1_000_000,
        "[[S:1-999999999]]" * 60_000,
        "".join(f"[[S:{n}-999999999]]" for n in range(50_000)),
    ],
    ids=range(18),
)
def test_a_megabyte_of_hostile_text_is_read(text):
    assert len(find_mentions(text)) <= MENTIONS_MAX
    cited, missing = find_sids(text, frozenset(range(1, 10_000)))
    assert len(cited) <= 9_999
    assert len(missing) <= 50_000


@pytest.mark.parametrize(
    ("text", "asked"),
    [
        ("see https://x.example/turn_1/files/zzz.csv", []),
        ("url(https://a.example/b?x=/turn_1/files/x.png)", []),
        ("[a](HTTP://h.example/turn_1/files/q.png) turn_1/files/b.csv", ["turn_1/files/b.csv"]),
        (
            "file:///out/turn_1/files/c.csv sandbox:/mnt/data/turn_1/files/d.csv",
            ["turn_1/files/c.csv", "turn_1/files/d.csv"],
        ),
    ],
)
def test_a_path_within_a_web_address_is_no_mention(text, asked):
    assert [mention.asked for mention in find_mentions(text)] == asked


@pytest.mark.parametrize(
    ("code", "turns"),
    [
        ("os.path.join('turn_1', 'files', name)", ["turn_1"]),
        ("Path('turn_1') / 'files'", ["turn_1"]),
        ("f'turn_{n}/files/a.csv'", ["turn_3", "turn_2", "turn_1", "turn_0"]),
        ("glob.glob('/out/turn_*/files/*')", ["turn_3", "turn_2", "turn_1", "turn_0"]),
        ("open('turn_1/files/a.csv')", []),
        ("open('turn_4/files/' + name)", []),
        ("return_1 = overturn_2", []),
    ],
)
def test_turns_are_found_whose_paths_a_program_makes(code, turns):
    assert turns_named(code, "turn_4") == turns


def test_of_a_turn_without_a_number_no_other_is_made_up():
    assert turns_named("f'turn_{n}'", T) == []
    assert (
        len(turns_named("f'turn_{n}'", "turn_1000"))
        == len(turns_named("turn_a; " * 9 + "'turn_'", "turn_9999"))
        == 20
    )
