"""A page as PDF that a screen reader can follow (PDF/UA), by WeasyPrint: the extra ``sfumato[pdf]``."""

from __future__ import annotations

from sfumato.errors import MissingExtra

__all__ = ["pdf_of"]


def pdf_of(html: str) -> bytes:
    """Return a page as PDF; nothing is fetched.

    Parameters
    ----------
    html : str
        One that is whole: it refers to nothing outside.

    Returns
    -------
    bytes

    Raises
    ------
    MissingExtra
        If WeasyPrint is absent, or the system's library Pango that it needs.
    """
    try:
        from weasyprint import HTML  # noqa: PLC0415
        from weasyprint.urls import URLFetcher  # noqa: PLC0415
    except (ImportError, OSError) as missing:
        raise MissingExtra(
            "a PDF needs WeasyPrint and the system's library Pango; pip install 'sfumato[pdf]', "
            "and on Debian apt-get install libpango-1.0-0 libpangoft2-1.0-0 libharfbuzz-subset0"
        ) from missing
    nothing = URLFetcher(allowed_protocols=())
    made: bytes = HTML(string=html, url_fetcher=nothing).write_pdf(pdf_variant="pdf/ua-1")
    return made
