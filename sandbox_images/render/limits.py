"""What a document may be: the general limits, each with its unit, and why it is what it is.

A document past a limit ends with the error or goes on with the warning that is named; limits of one format (pages,
slides, pixels of a picture) stand beside its writer. Time and memory are the sandbox's to bound.
"""

CONTENT_CHARACTERS_MAX = 16_000_000
"""``content_too_large``. More than any report that a person reads; a parser's tree takes some thirty times its source."""
NODES_MAX = 600_000
"""``too_many_elements``. A table of 5,000 rows by 6 has 35,000; past this a page engine takes more memory than there is."""
DEPTH_MAX = 160
"""``nesting_flattened``: elements deeper than this are unwrapped, since layout recurses some ten frames per level."""
PARSED_DEPTH_MAX = 300
"""``nesting_flattened``: tags opened within each other that the parser sees; its time grows with their square."""
SPAN_MAX = 200
"""Columns that a cell may span; a colspan of 65,534 would make a grid of that width. Larger ones are made this."""
ROWSPAN_MAX = 20_000
"""Rows that a cell may span. Larger ones are made this."""

BLOCK_BRACKETS_MAX = 2_000
"""``[`` in one block of Markdown; in one with more they are plain characters."""
BLOCK_ADDRESSES_MAX = 1_000
"""``:``, ``@`` and ``www.`` in one block of Markdown; in one with more no address is made a link by itself."""

ASSET_BYTES_MAX = 50_000_000
"""``asset_too_large``: bytes of a picture, font or style sheet, in a file or a data URI."""
IMAGE_PIXELS_MAX = 80_000_000
"""``asset_too_large``: a picture of 80 megapixels takes 320 MB once it is decoded."""
SHEETS_READ_MAX = 100
"""``asset_refused``: style sheets that are read for one document; some import themselves."""

SVG_NODES_MAX = 50_000
"""``asset_refused``: elements of a drawing, with what its ``use`` elements repeat."""
SVG_DEPTH_MAX = 100
"""``asset_refused``: levels of a drawing."""
SVG_EFFECTS_MAX = 20
"""Steps of filters in a drawing: blurs, turbulences. Filters past them are empty."""
SVG_EFFECT_SIZE_MAX = 50
"""Radius or octaves of such a step; larger ones are made 1."""
FORMULA_ROWS_MAX = 10
"""``formula_failed``: rows within each other, by fractions, roots and exponents; each level doubles the time."""
SVG_NESTED_MAX = 3
"""Drawings within drawings, as data URIs; deeper ones are left out."""

STYLE_CHARACTERS_MAX = 2_000_000
"""``dropped_css``: what is read of one style sheet."""
CSS_DEPTH_MAX = 32
"""``dropped_css``: brackets within each other; the compiler of selectors stops at some hundred levels."""
CSS_CHAIN_MAX = 60
"""``dropped_css``: compound selectors in a chain such as ``main > ul li``."""
CSS_NESTED_SELECTORS_MAX = 2_000
"""``dropped_css``: selectors that a nested rule makes, since each ``&`` repeats the selectors around it."""
CSS_EXPANSION_CHARACTERS_MAX = 100_000
"""``dropped_css``: characters of a custom property once the ones that it uses are put in."""
CSS_GRID_CHARACTERS_MAX = 4_000
"""Characters that define the columns, rows or areas of a grid; with more there is no grid."""
CSS_TRACKS_MAX = 999
"""Columns or rows that ``repeat()`` and grid lines can name, and digits of a padded counter. Larger ones are made this."""

TEMPLATE_BYTES_MAX = 30_000_000
"""``invalid_template``: bytes of a house template."""
TEMPLATE_UNPACKED_BYTES_MAX = 200_000_000
"""``invalid_template``: bytes of all of its parts."""
TEMPLATE_PARTS_MAX = 2_000
"""``invalid_template``: its parts."""
TEMPLATE_XML_BYTES_MAX = 20_000_000
"""``invalid_template``: bytes of one of its parts in XML; a style sheet of Word has 50 KB to 1 MB."""

MERGED_DOCUMENTS_MAX = 64
"""``invalid_part``: documents that are appended."""
MERGED_BYTES_MAX = 100_000_000
"""``invalid_part``: bytes of all of them; each is bounded as a picture is."""
MERGED_TEXT_BYTES_MAX = 10 * 1024 * 1024
"""``invalid_part``: bytes of one that is a text, as of a content."""
MERGED_PAGES_MAX = 2_000
"""``invalid_part``: pages of all PDFs together, as of a document."""
