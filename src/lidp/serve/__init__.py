"""``lidp serve``: a page that lists audits, follows running ones and compares them. It reads stores and never writes them."""
