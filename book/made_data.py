"""Data sets that are made, because the published ones cannot be had without a registration.

`criteo-N`: train.txt and test.txt in the format of Criteo's click logs, N and N / 4 lines with a
label, 13 counts and 26 categories, many of them missing. Whether a line is a click is drawn from a
logistic model of its fields, so that there is something to learn.

`flowers-N`: N photographs of each of five kinds of flowers that do not exist, as JPEG files of
different sizes in one folder per kind. It needs Debian's python3-opencv.
"""
import math
import random

NUMBERS, CATEGORIES = 13, 26
CLICKS = 0.256  # the share of clicks in Criteo's data


class Column:
    """Categories of one column: few or very many, most of them rare, some lines without one."""

    def __init__(self, index, draw):
        self.index, self.size = index, int(10 ** (1 + 4 * draw.random()))
        self.missing = 0.5 * draw.random() ** 3
        self.strength = 0.9 * draw.random()

    def pick(self, draw):
        """A category, as a number; None: missing. Small numbers are frequent (Zipf's law)."""
        if draw.random() < self.missing:
            return None
        return int(self.size ** draw.random())

    def weight(self, category):
        mixed = (category * 2654435761 + self.index * 40503) & 0xffffffff
        return self.strength * (mixed / 2 ** 32 - 0.5)

    def text(self, category):
        return f"{(category * 2246822519 + self.index * 3266489917) & 0xffffffff:08x}"


class Count:
    """Numbers of one column: log-normal, rounded down, some missing."""

    def __init__(self, draw):
        self.mean, self.spread = 4 * draw.random(), 0.5 + draw.random()
        self.missing = 0.4 * draw.random() ** 2
        self.weight = 0.5 * (draw.random() - 0.5)

    def pick(self, draw):
        if draw.random() < self.missing:
            return None
        bell = sum(draw.random() for _ in range(4)) - 2  # close to a normal distribution
        return int(math.exp(self.mean + self.spread * 1.7 * bell)) - 1

    def logit(self, number):
        return self.weight * (math.log1p(max(number, 0)) - self.mean)


def criteo_lines(count, seed):
    """(label, fields) of lines; the columns are the same for every seed."""
    shape = random.Random(838)
    counts = [Count(shape) for _ in range(NUMBERS)]
    columns = [Column(index, shape) for index in range(CATEGORIES)]
    draw = random.Random(seed)
    for _ in range(count):
        numbers = [column.pick(draw) for column in counts]
        categories = [column.pick(draw) for column in columns]
        logit = math.log(CLICKS / (1 - CLICKS)) - 0.15
        logit += sum(column.logit(number) for column, number in zip(counts, numbers, strict=True)
                     if number is not None)
        logit += sum(column.weight(category) for column, category
                     in zip(columns, categories, strict=True) if category is not None)
        label = draw.random() < 1 / (1 + math.exp(-logit))
        yield int(label), (["" if number is None else str(number) for number in numbers]
                           + ["" if category is None else column.text(category)
                              for column, category in zip(columns, categories, strict=True)])


def write_criteo(folder, numbers):
    for name, count, seed in (("train.txt", numbers[0], 1), ("test.txt", numbers[0] // 4, 2)):
        with open(folder / name, "w", encoding="ascii") as file:
            for label, fields in criteo_lines(count, seed):
                file.write("\t".join([str(label), *fields]) + "\n")


# Kinds: name, petals, colour of petals and of the centre (blue, green, red), width of a petal.
FLOWERS = (("aster", 14, (200, 120, 150), (60, 200, 240), 0.12),
           ("daisy", 10, (245, 245, 245), (40, 190, 240), 0.2),
           ("poppy", 4, (40, 40, 210), (20, 20, 20), 0.55),
           ("sunflower", 16, (30, 180, 245), (30, 60, 90), 0.16),
           ("tulip", 6, (150, 60, 220), (60, 160, 80), 0.35))


def write_flowers(folder, numbers):
    try:
        import cv2
        import numpy
    except ImportError as error:
        raise SystemExit(f"{error}: run `apt-get install python3-opencv`") from error
    for kind, (name, *look) in enumerate(FLOWERS):
        (folder / name).mkdir()
        for number in range(numbers[0]):
            draw = random.Random(1000 * kind + number)
            picture = flower(cv2, numpy, draw, *look)
            cv2.imwrite(str(folder / name / f"{number}.jpg"), picture,
                        [cv2.IMWRITE_JPEG_QUALITY, 85])


def flower(cv2, numpy, draw, petals, colour, centre, width):
    """A picture of a flower of some size somewhere on a green ground with noise."""
    high, wide = (120 + int(200 * draw.random()) for _ in range(2))
    noise = numpy.random.default_rng(int(2 ** 32 * draw.random()))
    picture = noise.normal((60, 110, 70), 25, (high, wide, 3)).clip(0, 255).astype("uint8")
    radius = min(high, wide) * (0.25 + 0.2 * draw.random())
    middle = [side / 2 + radius * 0.4 * (draw.random() - 0.5) for side in (wide, high)]
    turn, light = math.tau * draw.random(), 0.7 + 0.4 * draw.random()
    for petal in range(petals):
        angle = turn + math.tau * petal / petals
        at = [int(middle[0] + 0.55 * radius * math.cos(angle)),
              int(middle[1] + 0.55 * radius * math.sin(angle))]
        cv2.ellipse(picture, at, [int(0.5 * radius), int(max(2, width * radius))],
                    math.degrees(angle), 0, 360, [min(255, light * part) for part in colour], -1)
    cv2.circle(picture, [int(part) for part in middle], int(0.28 * radius),
               [light * part for part in centre], -1)
    return picture
