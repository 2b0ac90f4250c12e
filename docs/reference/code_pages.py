"""The pages of codes: a list by kind, and a cause and remedy for each."""

from reference.codes import sections
from reference.remedies import REMEDIES


def errors_page() -> str:
    """The page of all codes."""
    text = (
        "# Codes\n\n"
        "Made by `docs/generate.py`. Failures of a program and mistakes of a model are answers (HTTP 200, "
        "`ok: false`).\nErrors of the client or the service are problem documents. "
        "[Troubleshooting](troubleshooting.md) has a remedy for each code.\n"
    )
    for title, rows in sections().items():
        text += f"\n## {title}\n\n"
        if title == "Problem documents":
            text += "The status is in brackets; *retry* means `retryable`.\n\n"
        text += "".join(f"- `{code}`: {meaning}\n" for code, meaning in rows)
    return text


def troubleshooting_page() -> str:
    """The page with a cause and a remedy for each code, each below a heading that the search finds."""
    text = (
        "# Troubleshooting by error code\n\n"
        "Made by `docs/generate.py`. Find the `code` of an answer, verdict, notice or problem document; its message "
        "names the\nfield, the limit and the value. `proofbox doctor` [checks a machine](install.md#check-a-machine). "
        "The log has more\nunder the `request_id` of a problem ([logs](observability.md#logs)). "
        "[Codes](errors.md) lists all of them by kind.\n"
    )
    entries: dict[str, list[str]] = {}
    for title, rows in sections().items():
        for code, meaning in rows:
            kind = "Problem document" if title == "Problem documents" else title
            entries.setdefault(code, []).append(f"{kind}: {meaning}")
    for code in sorted(entries):
        if code not in REMEDIES:
            continue
        meanings = entries[code]
        cause = meanings[0] if len(meanings) == 1 else "\n" + "".join(f"\n- {each}" for each in meanings)
        text += f"\n## `{code}`\n\n{cause.strip()}\n\n**What to do:** {REMEDIES[code]}\n"
    return text
