"""openxml-audit: what Word and PowerPoint repair although the schema allows it."""

from pathlib import Path

from openxml_audit import FileFormat, OpenXmlValidator

# What it is called for: also what makes an application offer a repair, not only what breaks the schema.
_VALIDATOR = OpenXmlValidator(file_format=FileFormat.MICROSOFT_365)


def findings(path: Path) -> list[str]:
    """All findings of a DOCX or PPTX, warnings and remarks too."""
    return [f"{found.severity.value}: {found}" for found in _VALIDATOR.validate(path).errors]
