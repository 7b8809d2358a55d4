"""Text that an XML document may contain."""

import re

# The complement of Char in XML 1.0, section 2.2: not even a character reference may name these.
FORBIDDEN_IN_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def xml_text(text: str) -> str:
    """The text with a replacement character for each character that XML forbids. Escaping is left to the writer."""
    return FORBIDDEN_IN_XML.sub("\ufffd", text)
