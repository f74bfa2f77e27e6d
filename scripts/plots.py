# SPDX-License-Identifier: Apache-2.0
"""What the plotting scripts share: tables that are checked when they are read, colours, legends."""

import csv
import json
import math
import sys


def fail(message):
    """A sentence about the user's files, and the exit code of orrery for them."""
    print("error: " + message, file=sys.stderr)
    sys.exit(2)


def pyplot():
    """matplotlib.pyplot; late, so that files are checked on machines without it."""
    try:
        import matplotlib
    except ImportError:
        fail("matplotlib is missing; install Debian's python3-matplotlib")
    matplotlib.use("Agg")
    import matplotlib.pyplot
    return matplotlib.pyplot


def colors(count):
    """As many colours as there are series: ten that are far apart, else steps around the hue circle."""
    if count <= 10:
        return ["C%d" % number for number in range(count)]
    import matplotlib
    # Neighbours differ in lightness as well, so that a circle of 20 can still be told apart.
    wheel = matplotlib.colormaps["hsv"] if hasattr(matplotlib, "colormaps") else matplotlib.cm.get_cmap("hsv")
    return [tuple(channel * (0.95, 0.6)[number % 2] for channel in wheel(number / count)[:3]) for number in range(count)]


def legend_below(axes, columns=2, **options):
    """Under the axes and their label, where no data are. It needs a curve."""
    from matplotlib.transforms import ScaledTranslation
    below = ScaledTranslation(0, -0.5, axes.figure.dpi_scale_trans)  # inches
    return axes.legend(loc="upper center", bbox_to_anchor=(0.5, 0), bbox_transform=axes.transAxes + below, ncol=columns,
                       fontsize=7, borderaxespad=0, **options)


def number(row, column, path, line=None):
    try:
        value = float(row[column])
    except (TypeError, ValueError):
        value = math.nan
    if not math.isfinite(value):
        place = path if line is None else "%s:%d" % (path, line)
        fail("%s: column '%s' wants a number, got '%s'" % (place, column, row[column]))
    return value


def read_table(path, columns, numbers, hint):
    """Rows of a CSV file as dictionaries; `columns` must be there, `numbers` of them are converted."""
    try:
        with open(path, newline="", encoding="utf-8") as file:
            reader = csv.DictReader(file)
            missing = [column for column in columns if column not in (reader.fieldnames or [])]
            if missing:
                fail("%s: no column '%s'; %s" % (path, missing[0], hint))
            rows = []
            for row in reader:
                for column in numbers:
                    row[column] = number(row, column, path, reader.line_num)
                rows.append(row)
    except OSError as error:
        fail("%s: %s" % (path, error.strerror))
    except (UnicodeDecodeError, csv.Error):
        fail("%s: this is no CSV text; %s" % (path, hint))
    if not rows:
        fail("%s: no rows; %s" % (path, hint))
    return rows


def read_json(path, hint):
    try:
        with open(path, encoding="utf-8") as file:
            return json.load(file)
    except OSError as error:
        fail("%s: %s" % (path, error.strerror))
    except (UnicodeDecodeError, ValueError):
        fail("%s: this is no JSON; %s" % (path, hint))


def save(figure, path):
    """tight: what stands outside the axes, such as legends, is part of the picture."""
    try:
        figure.savefig(path, dpi=130, bbox_inches="tight")
    except (OSError, ValueError) as error:
        fail("%s: %s" % (path, error))
    print(path)
