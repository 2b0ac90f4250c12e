"""Fields about the browser: no script runs and nothing is fetched, so most ask for nothing or are refused."""

from proofbox.service.facades.gotenberg.fields import FieldReader

_NO_NETWORK = "this service fetches nothing"
_NO_SCRIPTS = "this service runs no scripts"


def read_browser_fields(reader: FieldReader, *, media: str) -> bool:
    """Reads what conversions and screenshots have in common.

    Args:
        reader: the form.
        media: the media type that the renderer lays out for.

    Returns:
        Whether a resource that cannot be loaded fails the request.
    """
    for name in ("waitDelay", "skipNetworkIdleEvent", "skipNetworkAlmostIdleEvent", "optimizeForSpeed"):
        if reader.text(name):
            reader.warn(f"{name}: it has no effect, as this service runs no scripts and fetches nothing")
    for name in ("waitForExpression", "waitForSelector", "waitWindowStatus"):
        reader.refuse_if_given(name, _NO_SCRIPTS)
    reader.boolean("failOnConsoleExceptions")  # there is no console, so there is no exception in it
    for name in ("cookies", "emulatedMediaFeatures", "ignoreResourceHttpStatusDomains"):
        reader.refuse_if_given(name, _NO_NETWORK, "[]")
    reader.refuse_if_given("extraHttpHeaders", _NO_NETWORK, "{}")
    reader.refuse_if_given("userAgent", _NO_NETWORK)
    for name in ("failOnHttpStatusCodes", "failOnResourceHttpStatusCodes"):
        # What clients send by default.
        reader.refuse_if_given(name, f"{_NO_NETWORK}, so there are no status codes", "[]", "[499,599]")
    other = "screen" if media == "print" else "print"
    if reader.choice("emulatedMediaType", "", ("screen", "print")) == other:
        reader.refuse(
            f"form field 'emulatedMediaType' is invalid (got '{other}', resulting to this route lays out for "
            f"'{media}'; leave it out)"
        )
    return reader.boolean("failOnResourceLoadingFailed")
