// SPDX-License-Identifier: MIT
// Colours. style.css has them, for light and dark; canvases read them from there.
import {SERIES_MAX} from "./cells.js";

const NAMES =
	"page panel raised ink ink2 ink3 line faint grid neutral others accent accent-ground more less hit hit-ink warn warn-ground segments chosen".split(
		" ",
	);

/** @param {(name: string) => string} read a property of style.css, without its dashes: a value, light-dark(a, b) or var(--other) @param {boolean} isDark @returns {Palette} */
export function readPalette(read, isDark) {
	/** @param {string} name @returns {string} */
	const valueOf = (name) => {
		const text = read(name).trim(),
			other = /^var\(--([\w-]+)\)$/.exec(text),
			both = /^light-dark\(([^,]+), ([^,]+)\)$/.exec(text);
		return other ? valueOf(other[1]) : both ? both[isDark ? 2 : 1] : text;
	};
	/** @type {any} */
	const palette = Object.fromEntries(NAMES.map((name) => [name, valueOf(name)]));
	palette.series = Array.from({length: SERIES_MAX}, (_, i) => valueOf(`series-${i}`));
	palette.strength = Number(valueOf("strength"));
	return palette;
}

/** @param {string} color #rrggbb @returns {number[]} */
function channels(color) {
	return [1, 3, 5].map((at) => parseInt(color.slice(at, at + 2), 16));
}

/** @param {string} color @param {string} ground @param {number} share of the colour @returns {string} #rrggbb */
export function mixColors(color, ground, share) {
	const below = channels(ground);
	return (
		"#" +
		channels(color)
			.map((value, i) =>
				Math.round(value * share + below[i] * (1 - share))
					.toString(16)
					.padStart(2, "0"),
			)
			.join("")
	);
}

/** @param {string} color @returns {number} relative luminance, as WCAG defines it */
function luminance(color) {
	const [red, green, blue] = channels(color).map((value) =>
		value / 255 <= 0.04045 ? value / 255 / 12.92 : ((value / 255 + 0.055) / 1.055) ** 2.4,
	);
	return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
}

/** @param {string} a @param {string} b @returns {number} from 1 to 21 */
export function contrastOf(a, b) {
	const [low, high] = [luminance(a), luminance(b)].sort((x, y) => x - y);
	return (high + 0.05) / (low + 0.05);
}

/** @type {WeakMap<Palette, Map<string, FrameColors>>} */
const knownColors = new WeakMap();

/**
 * How a frame is drawn. A pale one is a chain, or merged; a dim one is no hit of a search.
 * @param {Palette} palette
 * @param {number} series or -1
 * @param {"plain" | "pale" | "dim" | "hit"} style
 * @param {number} [change] from -1 to 1: its colour, in place of the series'
 * @returns {FrameColors}
 */
export function frameColors(palette, series, style, change = NaN) {
	const known = knownColors.get(palette) ?? new Map(),
		step = Math.round(change * CHANGE_STEPS) / CHANGE_STEPS,
		key = `${series} ${style} ${step}`,
		colors = known.get(key) ?? findFrameColors(palette, series, style, step);
	knownColors.set(palette, known.set(key, colors));
	return colors;
}

/** One of these can be read on any ground. */
const EXTREMES = ["#000000", "#ffffff"];
/** So many shades of more, and of less. */
const CHANGE_STEPS = 8;

/** @param {Palette} palette @param {number} series @param {"plain" | "pale" | "dim" | "hit"} style @param {number} change @returns {FrameColors} */
function findFrameColors(palette, series, style, change) {
	const isChange = !Number.isNaN(change),
		isNeutral = isChange ? !change : series < 0,
		color = isNeutral ? palette.neutral : isChange ? palette[change > 0 ? "more" : "less"] : palette.series[series];
	if (style === "hit")
		return {ground: palette.hit, edge: palette.hit, text: palette["hit-ink"], value: palette["hit-ink"]};
	const strength = isNeutral ? 1 : isChange ? 0.15 + 0.55 * Math.abs(change) : palette.strength;
	const ground = mixColors(
		color,
		palette.panel,
		style === "plain" ? strength : style === "pale" ? strength * 0.5 : isNeutral ? 0.45 : 0.12,
	);
	const text = readable(ground, [style === "plain" ? palette.ink : palette.ink2, ...EXTREMES]);
	return {
		ground,
		edge: style === "plain" && !isNeutral ? color : ground,
		text,
		value: readable(ground, [palette.ink2, ...EXTREMES]),
	};
}

/** Least contrast of text. */
export const CONTRAST_MIN = 4.5;

/** @param {string} ground @param {string[]} wanted in order of preference @returns {string} the first that can be read on the ground, else the best one */
export function readable(ground, wanted) {
	const best = wanted.reduce((most, color) => (contrastOf(color, ground) > contrastOf(most, ground) ? color : most));
	return wanted.find((color) => contrastOf(color, ground) >= CONTRAST_MIN) ?? best;
}
