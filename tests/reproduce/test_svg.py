"""SVG files are shortened, and their text is not."""

from lidp.reproduce.svg import shorten_svg


def test_shorten_svg_rounds_coordinates_and_leaves_text_alone():
    lines = [
        '<svg version="1.1" width="10.123456pt">',
        ' <g id="axes_1">',
        '  <path id="m12ab" d="M 123.456789 -0.001 ',
        "L 1.23456 2 ",
        "z",
        '" style="stroke-width: 0.8"/>',
        '  <text style="font-size: 9px; font-family: \'Arial\'; x: 1" x="1.234" transform="rotate(-0 1 2)">slope -1.0123</text>',
        " </g>",
        "</svg>",
    ]
    assert shorten_svg("\n".join(lines)).splitlines() == [
        '<svg version="1.1" width="10.1pt">',
        "<g>",
        '<path id="m12ab" d="M123.5 0L1.23 2z" style="stroke-width: 0.8"/>',
        '<text style="font-size: 9px; x: 1" x="1.23">slope -1.0123</text>',
        "</g>",
        "</svg>",
    ]
