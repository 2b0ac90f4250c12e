"""What rendering tools name besides their content, and so needs to be at hand for the renderer."""

import pytest

from proofbox.contracts.render_tools import WriteDocxParams, WritePdfParams, WritePptxParams

OWN = {"path": "a", "content": "text"}


@pytest.mark.parametrize(
    ("model", "given", "named"),
    [
        (WriteDocxParams, {"template": "fi:turn_1.user.attachments/House Style.docx"}, "House Style.docx"),
        (WritePptxParams, {"template": "turn_1/attachments/House Style.pptx"}, "House Style.pptx"),
        (WritePdfParams, {"merge": ["fi:turn_1.user.attachments/House Style.pdf"]}, "House Style.pdf"),
        (WritePdfParams, {"attachments": ["fi:turn_1.user.attachments/House Style.csv"]}, "House Style.csv"),
    ],
)
def test_files_are_named_by_their_physical_paths_in_quotes(model, given, named):
    assert f'"turn_1/attachments/{named}"' in model(**OWN, **given).mentions()


def test_pictures_of_running_lines_are_named():
    params = WriteDocxParams(**OWN, header={"left": "![a](turn_1/files/a.png)"}, footer="![b](turn_1/files/b.png)")
    assert [f"turn_1/files/{name}.png" in params.mentions() for name in "ab"] == [True, True]


def test_documents_that_name_files_in_turn_are_the_theme_and_those_that_are_appended():
    params = WritePptxParams(**OWN, theme="turn_1/files/t.yaml", merge="fi:turn_1.files/a.md", template="x.pptx")
    assert params.documents().split("\n") == ["turn_1/files/t.yaml", '"turn_1/files/a.md"']
    assert params.options()["merge"] == ["fi:turn_1.files/a.md"]
