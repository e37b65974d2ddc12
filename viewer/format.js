// SPDX-License-Identifier: MIT
// Numbers as people read them. A thin space stands before a unit.

const THIN = "\u2009";
const MINUS = "\u2212";
export const MISSING = "–";
const BYTE_UNITS = ["B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];
const COUNT_UNITS = ["", "k", "M", "G", "T", "P"];
/** Factor from a nanosecond. */
const TIME_UNITS = /** @type {[number, string][]} */ ([
	[1e9, "s"],
	[1e6, "ms"],
	[1e3, "µs"],
	[1, "ns"],
]);

/** @param {number} value @returns {string} three digits: one decimal below 100 */
function threeDigits(value) {
	return value < 99.95 ? value.toFixed(1) : value.toFixed(0);
}

/** @param {number} value @param {number} step @param {string[]} units @returns {string} */
function scaled(value, step, units) {
	let unit = 0;
	while (value >= step - 0.5 && unit < units.length - 1) {
		value /= step;
		unit++;
	}
	return (unit ? threeDigits(value) : String(Math.round(value))) + (units[unit] ? THIN + units[unit] : "");
}

/** @param {number | null | undefined} bytes @returns {string} such as 41.5 MiB */
export function formatBytes(bytes) {
	if (bytes == null || Number.isNaN(bytes)) return MISSING;
	return (bytes < 0 ? MINUS : "") + scaled(Math.abs(bytes), 1024, BYTE_UNITS);
}

/** @param {number} count @returns {string} whole, with commas */
export function formatWhole(count) {
	return (
		(count < 0 ? MINUS : "") +
		Math.abs(Math.round(count))
			.toString()
			.replace(/\B(?=(\d{3})+$)/g, ",")
	);
}

/** @param {number} count @returns {string} such as 1 block */
export function formatBlocks(count) {
	return `${formatWhole(count)} ${count === 1 ? "block" : "blocks"}`;
}

/** @param {number | null | undefined} count @returns {string} with commas up to 9,999, then such as 40.1 k */
export function formatCount(count) {
	if (count == null || Number.isNaN(count)) return MISSING;
	return Math.abs(count) < 10000
		? formatWhole(count)
		: (count < 0 ? MINUS : "") + scaled(Math.abs(count), 1000, COUNT_UNITS);
}

/** @param {number} value @param {"bytes" | "blocks" | "peak" | "temporaries"} measure @returns {string} */
export function formatMeasure(value, measure) {
	return measure === "bytes" || measure === "peak" ? formatBytes(value) : formatCount(value);
}

/** @param {number} bytes @returns {string} with a sign */
export function formatChange(bytes) {
	return (bytes > 0 ? "+" : "") + formatBytes(bytes);
}

/** @param {number} a @param {number} b @returns {string} the change from a to b, as `xheap diff` rounds it; nothing without one, or without a share */
export function formatGrowth(a, b) {
	const percent = (Math.abs(b - a) / a) * 100;
	return a && a !== b ? `${b > a ? "+" : MINUS}${percent.toFixed(Number(percent < 1000))}${THIN}%` : "";
}

/** What a product of shares may lack of a whole number. */
const EPSILON = 1e-9;

/** @param {number} share from 0 to 1 @returns {string} rounded down, as reports do it: a finding and the sentence then say the same */
export function formatShare(share) {
	if (!Number.isFinite(share)) return MISSING;
	const percent = share * 100;
	if (percent <= 0) return "0" + THIN + "%";
	if (percent < 0.1) return "<0.1" + THIN + "%";
	return (
		(percent < 10 ? (Math.floor(percent * 10 + EPSILON) / 10).toFixed(1) : Math.floor(percent + EPSILON)) +
		THIN +
		"%"
	);
}

/** @param {number} ns @returns {string} three digits, by size */
export function formatTime(ns) {
	if (ns <= 0) return "0";
	const [factor, unit] = TIME_UNITS.find(([least]) => ns >= least * 0.9995) ?? [1, "ns"];
	const value = ns / factor;
	return (unit === "ns" ? value.toFixed(0) : value < 9.995 ? value.toFixed(2) : threeDigits(value)) + THIN + unit;
}

/** A time with as many decimals as the step between ticks needs. @param {number} ns @param {number} step @returns {string} */
export function formatTick(ns, step) {
	if (ns <= 0) return "0";
	const [factor, unit] = TIME_UNITS.find(([least]) => ns >= least) ?? [1, "ns"];
	const decimals = Math.max(0, Math.ceil(-Math.log10(step / factor) - 1e-9));
	return (ns / factor).toFixed(Math.min(decimals, 9)) + THIN + unit;
}

/** @param {number} ns @returns {string} as commands take it, exact: 12.5s, 7545000001ns */
export function commandTime(ns) {
	const unit = TIME_UNITS.find(([factor]) => ns % factor === 0) ?? [1, "ns"];
	return ns === 0 ? "0" : ns / unit[0] + unit[1].replace("µ", "u");
}

/** Round steps of an axis. @param {number} span @param {number} most how many @param {boolean} isBinary steps in units of 1024 @returns {number} */
export function axisStep(span, most, isBinary) {
	const least = span / most;
	const unit = isBinary ? 1024 ** Math.max(0, Math.floor(Math.log2(Math.max(least, 1)) / 10)) : 1;
	const scaledLeast = least / unit;
	// Steps of 200 or 500 KiB would miss the MiB.
	if (isBinary && scaledLeast > 100) return 2 ** Math.ceil(Math.log2(scaledLeast * 0.999)) * unit;
	const power = 10 ** Math.floor(Math.log10(scaledLeast));
	for (const factor of isBinary && unit > 1 ? [1, 2, 2.5, 5, 10] : [1, 2, 5, 10]) {
		if (power * factor >= scaledLeast * 0.999) return Math.max(1, power * factor * unit);
	}
	return power * 10 * unit;
}

/** Classes that stand for all: of light stacks they are not told apart. */
export const ANY_SIZE = 63,
	ANY_LIFE = 39;

/** @param {number} size class @returns {string} */
export function sizeName(size) {
	if (size === ANY_SIZE) return "[any size]";
	if (size === 0) return "0" + THIN + "B";
	const low = 2 ** (size - 1);
	return size === 1 ? "1" + THIN + "B" : `${formatBytes(low)} to ${formatBytes(2 ** size - 1)}`;
}

/** @param {number} life class @returns {number} the least lifetime of it in nanoseconds */
export function lifeLimit(life) {
	if (life === 0) return 0;
	const power = 10n ** BigInt(2 + Math.floor((life - 1) / 2));
	return life % 2 ? Number(power) : Number((power * 31622776601683793n) / 10000000000000000n);
}

/** @param {number} life class @returns {string} */
export function lifeName(life) {
	if (life === ANY_LIFE) return "[any lifetime]";
	return life === 0
		? `below ${formatTime(100)}`
		: `${formatTime(lifeLimit(life))} to ${formatTime(lifeLimit(life + 1))}`;
}
