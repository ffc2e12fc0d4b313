"""Checks a page in the browser against what WCAG 2.2 AA asks and a program can decide.

    findings = accessibility.check(page)      # [] or sentences

Contrast of every visible text, names of controls, pictures and regions (those of the browser's
accessibility tree, so what a screen reader says), landmarks, headings, language, the order of Tab
with a visible focus, no motion for those who prefer none, no scrolling sideways at 320 pixels.
"""
import json

CONTRAST = 4.5
CONTRAST_LARGE = 3.0  # from 24 px on, bold from 18.66 px on
NEED_NAMES = {"button", "checkbox", "combobox", "link", "textbox", "slider", "image", "img",
              "region", "table", "navigation", "group"}


TEXTS = """(() => {
    const channels = (text) => {
        const context = Object.assign(document.createElement("canvas"), {width: 1, height: 1})
            .getContext("2d", {willReadFrequently: true});
        context.fillStyle = text;
        context.fillRect(0, 0, 1, 1);
        const [r, g, b, a] = context.getImageData(0, 0, 1, 1).data;
        return [r, g, b, a / 255];
    };
    const seen = new Map();
    const color = (text) => seen.get(text) || seen.set(text, channels(text)).get(text);
    const over = (top, below) => [0, 1, 2].map((i) => top[i] * top[3] + below[i] * (1 - top[3]));
    const luminance = (c) => {
        const [r, g, b] = c.map((v) => v / 255)
            .map((v) => (v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4));
        return 0.2126 * r + 0.7152 * g + 0.0722 * b;
    };
    const ratio = (a, b) => {
        const [x, y] = [luminance(a), luminance(b)].sort((p, q) => q - p);
        return (x + 0.05) / (y + 0.05);
    };
    const chain = (element) => (element ? [...chain(element.parentElement), element] : []);
    const canvas = matchMedia("(prefers-color-scheme: dark)").matches
        && getComputedStyle(document.documentElement).colorScheme.includes("dark")
        ? [18, 18, 18] : [255, 255, 255];
    window.groundOf = (element) => chain(element).reduce(
        (below, one) => over(color(getComputedStyle(one).backgroundColor), below), canvas);
    window.contrastOf = (text, element) => {
        const ground = groundOf(element);
        return ratio(over(color(text), ground), ground);
    };
    const isSeen = (element) =>
        element.checkVisibility({checkOpacity: true, checkVisibilityCSS: true}) &&
        !element.closest("[aria-hidden=true], script, noscript, style");
    const rows = [];
    const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
    for (let node; (node = walker.nextNode());) {
        const element = node.parentElement;
        if (!node.data.trim() || !isSeen(element)) continue;
        const style = getComputedStyle(element);
        const svg = element instanceof SVGElement;
        const size = parseFloat(style.fontSize);
        const large = size >= 24 || (size >= 18.66 && style.fontWeight >= 700);
        const landmark = element.closest(
            "main, nav, header, footer, aside, [role=main], [role=banner], .skip");
        rows.push({text: node.data.trim().slice(0, 40), large, landmark: Boolean(landmark),
            ratio: contrastOf(svg ? style.fill : style.color, element)});
    }
    return rows;
})()"""

OUTLINE = """(() => {
    const seen = [...document.querySelectorAll("h1, h2, h3, h4, h5, h6")]
        .filter((h) => h.checkVisibility());
    const ids = [...document.querySelectorAll("[id]")].map((e) => e.id);
    return {lang: document.documentElement.lang, title: document.title,
        mains: document.querySelectorAll("main").length,
        headings: seen.map((h) => Number(h.tagName[1])),
        twice: ids.filter((id, i) => ids.indexOf(id) !== i),
        unscoped: document.querySelectorAll("th:not([scope])").length};
})()"""

# Everything that can be operated gets a number, in the order of the document.
MARK = """(() => {
    const all = [...document.querySelectorAll(
        "a[href], button, select, input, textarea, summary, [tabindex]")]
        .filter((e) => e.tabIndex >= 0 && !e.disabled && e.checkVisibility());
    all.forEach((e, i) => (e.dataset.stop = i));
    document.activeElement.blur();
    return all.map((e) => e.outerHTML.slice(0, 90));
})()"""

FOCUSED = """(() => {
    const element = document.activeElement;
    const style = getComputedStyle(element);
    const outlined = style.outlineStyle !== "none" && parseFloat(style.outlineWidth) >= 1;
    const box = element.getBoundingClientRect();
    return {stop: element.dataset.stop, outlined: outlined || style.boxShadow !== "none",
        contrast: outlined && style.outlineStyle !== "auto"
            ? contrastOf(style.outlineColor, element.parentElement || element) : 99,
        inside: box.bottom > 0 && box.top < innerHeight && box.right > 0 && box.left < innerWidth};
})()"""

MOTION = """[document.documentElement, ...document.querySelectorAll("*")].filter((e) => {
    const style = getComputedStyle(e);
    return style.scrollBehavior === "smooth" || parseFloat(style.animationDuration) > 0
        || parseFloat(style.transitionDuration) > 0;
}).map((e) => e.outerHTML.slice(0, 60))"""


def check_texts(page):
    rows = page.evaluate(TEXTS)
    outside = [row["text"] for row in rows if not row["landmark"]]
    if outside:
        yield f"{len(outside)} texts outside of landmarks, the first one: {outside[0]!r}"
    for row in rows:
        least = CONTRAST_LARGE if row["large"] else CONTRAST
        if row["ratio"] < least:
            yield f"contrast {row['ratio']:.2f}, {least} needed: {row['text']!r}"


def check_outline(page):
    found = page.evaluate(OUTLINE)
    if not found["lang"]:
        yield "the page has no language"
    if not found["title"]:
        yield "the page has no title"
    if found["mains"] != 1:
        yield f"{found['mains']} main landmarks"
    if found["twice"]:
        yield f"identifiers that occur twice: {found['twice']}"
    if found["unscoped"]:
        yield f"{found['unscoped']} table headings without a scope"
    levels = found["headings"]
    if levels.count(1) != 1:
        yield f"{levels.count(1)} headings of level 1"
    for before, level in zip(levels, levels[1:]):
        if level > before + 1:
            yield f"a heading of level {level} follows one of level {before}"


def check_names(page):
    for node in page.call("Accessibility.getFullAXTree")["nodes"]:
        role = node.get("role", {}).get("value")
        name = node.get("name", {}).get("value", "").strip()
        focusable = any(p["name"] == "focusable" and p["value"].get("value")
                        for p in node.get("properties", ()))
        if node.get("ignored") or name or role not in NEED_NAMES:
            continue
        if focusable or role not in ("table", "group"):
            yield f"a {role} without a name: {describe(page, node)}"


def describe(page, node):
    found = page.call("DOM.describeNode", backendNodeId=node["backendDOMNodeId"])["node"]
    return found["nodeName"].lower() + " " + json.dumps(found.get("attributes", []))[:100]


def check_keyboard(page):
    """Tab must reach everything, each with a visible focus."""
    wanted = page.evaluate(MARK)
    missing = dict(enumerate(wanted))
    for _ in range(4 * len(wanted) + 20):  # areas that scroll are stops of the browser
        if not missing:
            break
        page.press("Tab")
        at = page.evaluate(FOCUSED)
        element = missing.pop(int(at.get("stop", -1)), None)
        if element and not at["outlined"]:
            yield f"no visible focus: {element}"
        elif element and at["contrast"] < CONTRAST_LARGE:
            yield f"contrast of the focus {at['contrast']:.2f}: {element}"
        elif element and not at["inside"]:
            yield f"focused outside of the window: {element}"
    for element in missing.values():
        yield f"not reached by Tab: {element}"


def check(page, scheme="light", keyboard=True):
    """Sentences about what is wrong with the page in this color scheme, with less motion preferred:
    then nothing may move, and what gets the focus is in view at once."""
    page.prefer(scheme, motion="reduce")
    page.settle()
    moving = [f"moves: {element}" for element in page.evaluate(MOTION)]
    findings = [*moving, *check_texts(page), *check_outline(page), *check_names(page)]
    return findings + (list(check_keyboard(page)) if keyboard else [])


def check_reflow(page, width=320):
    """In a narrow window nothing needs scrolling in both directions."""
    page.resize(width, 700, mobile=True)
    page.settle()
    wide = page.evaluate("document.documentElement.scrollWidth")
    return [f"{wide} pixels wide in a window of {width}"] if wide > width else []
