"""A few lines of SVG: shapes and text on a white page, 830 pixels wide as a README shows it."""

from xml.sax.saxutils import escape

WIDTH = 830

# Okabe and Ito's colours, which people with any kind of colour vision can tell apart.
BLACK, GREY, PALE, WHITE = "#000000", "#767676", "#e8e8e8", "#ffffff"
ORANGE, SKY, GREEN, YELLOW = "#e69f00", "#56b4e9", "#009e73", "#f0e442"
BLUE, RED, PURPLE = "#0072b2", "#d55e00", "#cc79a7"


class Picture:
    """Collects elements; coordinates in pixels from the top left."""

    def __init__(self, title, height):
        self.title, self.height = title, height
        self.elements = []

    def rect(self, x, y, width, height, fill=WHITE, stroke=BLACK, line=1):
        end = f'" fill="{fill}" stroke="{stroke}" stroke-width="{line:g}"/>'
        drawn = f"M{x:g} {y:g}h{width:g}v{height:g}h{-width:g}z"
        if self.elements and self.elements[-1].endswith(end):  # as the one before: one path of both
            drawn = self.elements.pop().removesuffix(end).removeprefix('<path d="') + drawn
        self.elements.append(f'<path d="{drawn}{end}')

    def line(self, x1, y1, x2, y2, stroke=BLACK, line=1, arrow=False):
        extra = ' marker-end="url(#arrow)"' if arrow else ""
        self.elements.append(f'<line x1="{x1:g}" y1="{y1:g}" x2="{x2:g}" y2="{y2:g}" '
                             f'stroke="{stroke}" stroke-width="{line:g}"{extra}/>')

    def text(self, x, y, text, size=15, anchor="start", bold=False, mono=False, fill=BLACK):
        family = "DejaVu Sans Mono, monospace" if mono else "DejaVu Sans, Arial, sans-serif"
        weight = ' font-weight="bold"' if bold else ""
        self.elements.append(f'<text x="{x:g}" y="{y:g}" font-family="{family}" font-size="{size}" '
                             f'text-anchor="{anchor}"{weight} fill="{fill}">{escape(text)}</text>')

    def lines(self, x, y, texts, step=20, **how):
        """Texts below one another."""
        for i, text in enumerate(texts):
            self.text(x, y + i * step, text, **{"size": 14, **how})

    def box(self, x, y, width, height, label, fill=WHITE, stroke=BLACK, line=1, size=14,
            colour=BLACK, bold=False):
        """A rectangle with text in its middle."""
        self.rect(x, y, width, height, fill, stroke, line)
        self.text(x + width / 2, y + height // 2 + 5, label, size, "middle", bold, fill=colour)

    def svg(self):
        return "\n".join([
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {self.height}" '
            f'width="{WIDTH}" height="{self.height}" role="img">',
            f"<title>{escape(self.title)}</title>",
            '<defs><marker id="arrow" viewBox="0 0 10 10" refX="9" refY="5" markerWidth="7" '
            'markerHeight="7" orient="auto-start-reverse"><path d="M0,0 L10,5 L0,10 z"/></marker>'
            "</defs>",
            f'<rect width="{WIDTH}" height="{self.height}" fill="{WHITE}"/>',
            *self.elements, "</svg>", ""
        ])
