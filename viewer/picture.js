// SPDX-License-Identifier: MIT
// What the views show: the state of the page applied to the cells. It is computed once for a change, and each view reads it.
import {
	bothMasks,
	cellWeights,
	filterCells,
	findFrames,
	findGroup,
	followCells,
	groupCells,
	liveCurve,
	maskWhere,
	nearestBound,
	pathsWith,
	selectCells,
	touchesGap,
	AIFI,
	AIFO,
	AOFO,
} from "./cells.js";
import {cellsOnPath} from "./tree.js";
import {formatBlocks, formatBytes, formatTime} from "./format.js";
import {classNames} from "./store.js";

/** @param {Pick<App, "shown">} app @param {When} selection @returns {boolean} whether cells of the shown range have these times as bounds */
function isInShown(app, selection) {
	if (selection.kind === "peak") return app.shown.cells.peak >= 0;
	return hasTimes(app.shown, selection.kind === "moment" ? [selection.at] : [selection.from, selection.to]);
}

/** @param {Model} model @param {number[]} times @returns {boolean} whether they are bounds */
export function hasTimes(model, times) {
	return times.every((time) => model.cells.bounds[nearestBound(model, time)] === time);
}

/** @param {Model} model @param {When} selection @returns {Choice} */
export function choose(model, selection) {
	// While a trace is recorded, no bound is its peak: what is live now takes that place.
	if (selection.kind === "peak") return {kind: "moment", at: model.cells.peak < 0 ? model.last : model.cells.peak};
	if (selection.kind === "moment") return {kind: "moment", at: nearestBound(model, selection.at)};
	const from = nearestBound(model, selection.from),
		to = nearestBound(model, selection.to === Infinity ? model.cells.bounds[model.last] : selection.to);
	return {
		kind: "window",
		from: Math.min(from, model.last - 1),
		to: Math.max(to, Math.min(from, model.last - 1) + 1),
		classes: selection.classes,
	};
}

const CLASS_WORDS = [
	[1, "made and freed here"],
	[2, "made here, still there"],
	[4, "older, freed here"],
	[8, "older, still there"],
];

/** @param {Model} model @param {Choice} choice */
export function placeOf(model, choice) {
	const {peak, whole} = model.cells,
		isMoment = choice.kind === "moment";
	return {
		isPeak: isMoment && choice.at === peak,
		isWhole: !isMoment && whole && choice.from === 0 && choice.to === model.last,
	};
}

/** @param {Model} model @param {Choice} choice @returns {string} */
export function titleOf(model, choice) {
	const {isPeak, isWhole} = placeOf(model, choice),
		time = formatTime(model.cells.bounds[choice.kind === "moment" ? choice.at : choice.to]);
	if (choice.kind === "moment") return isPeak ? `live at ${time}, the peak` : `live at ${time}`;
	if (isWhole && choice.classes === (AIFI | AIFO)) return "all blocks of the run";
	if (isWhole && choice.classes === AIFO) return "never freed";
	return (
		CLASS_WORDS.filter(([bit]) => choice.classes & Number(bit))
			.map(([bit, words]) => (Number(bit) & (AIFO | AOFO) ? `${words} at ${time}` : words))
			.join("; ") || "nothing"
	);
}

/** @param {Model} model @param {Item} item @param {State} state @returns {Uint8Array} cells of a frame or row; the last answer is kept */
export function itemCells(model, item, state) {
	const key = JSON.stringify([
			item,
			item.kind === "path" && [state.by, state.isInverted, state.isFolded, state.isMerged],
		]),
		last = model.cache.get("item");
	if (last?.key === key) return last.mask;
	let mask;
	if (item.kind === "path") {
		mask = cellsOnPath(model, item.path, state);
	} else if (item.by === "inclusive") {
		mask = /** @type {Uint8Array} */ (filterCells(model, [{by: "function", key: item.key, hide: false}]));
	} else {
		const {keys} = groupCells(model, item.by),
			group = findGroup(model, item.by, item.key);
		mask = maskWhere(model, (i) => keys[i] === group);
	}
	model.cache.set("item", {key, mask});
	return mask;
}

/** Kinds of a trace's state that make sums of what was made lower bounds. */
const LOSING = ["losses", "damage"];
/** Those after which live bytes may be too large. */
const UNCERTAIN = ["losses", "unknown_frees", "order_conflicts", "damage"];

/** @param {Trace} trace @param {string[]} kinds */
function hasState(trace, kinds) {
	return (trace.state ?? []).some((row) => kinds.includes(row.kind));
}

/** @param {Pick<App, "store" | "trace" | "whole" | "shown" | "picture">} app @returns {Picture} */
export function makePicture(app) {
	const {state} = app.store,
		model = isInShown(app, state.selection) ? app.shown : app.whole;
	const begin = performance.now();
	const choice = choose(model, state.selection),
		mask = filterCells(model, state.filters),
		selected =
			app.store.isDragging && app.picture
				? followCells(model, choice, mask, app.picture)
				: selectCells(model, choice, mask);
	const passMs = performance.now() - begin;
	const isMoment = choice.kind === "moment",
		from = isMoment ? 0 : choice.from,
		to = isMoment ? choice.at : choice.to;
	const sample = app.trace.sample_bytes ? "~" : "";
	const isLosing = hasState(app.trace, LOSING) && (touchesGap(model, from, to) || !(app.trace.gaps ?? []).length);
	const hitFrames = findFrames(model, state.search);
	return {
		model,
		shown: app.shown,
		choice,
		mask,
		selected,
		...placeOf(model, choice),
		hitFrames,
		passMs,
		hitPaths: hitFrames && pathsWith(model, (i) => hitFrames[i] === 1),
		itemMask: state.item && itemCells(model, state.item, state),
		title: titleOf(model, choice),
		made: sample || (isLosing ? "≥\u2009" : ""),
		live: sample,
		isUncertain: hasState(app.trace, UNCERTAIN) && (isLosing || !hasState(app.trace, LOSING)),
	};
}

/** @param {Picture} picture @returns {Record<string, string>} the selection, as a request has it */
export function askedSelection({choice, model}) {
	const {bounds} = model.cells;
	return choice.kind === "moment"
		? {at: String(bounds[choice.at])}
		: {from: String(bounds[choice.from] + 1), to: String(bounds[choice.to]), classes: classNames(choice.classes)};
}

/** @param {Picture} picture @returns {string} mark before a sum of the selection */
export function selectionMark(picture) {
	return picture.choice.kind === "moment" ? picture.live : picture.made;
}

/** @param {App} app @returns {Ink | null} whose curve is drawn: what is hovered, selected, searched for, or filtered */
export function currentInk(app) {
	const {state} = app.store;
	if (app.ink) return app.ink;
	if (state.item) {
		const {item} = state;
		return {
			key: `item ${JSON.stringify(item)}`,
			mask: (model) => itemCells(model, item, state),
			model: item.kind === "path" ? app.detail.model : undefined,
		};
	}
	const {search} = state,
		filters = /** @type {Filter[]} */ (search.trim() ? [{by: "search", key: search, hide: false}] : state.filters);
	return filters.length
		? {key: JSON.stringify(filters), mask: (model) => /** @type {Uint8Array} */ (filterCells(model, filters))}
		: null;
}

/** @param {App} app @param {Ink} ink @returns {Float64Array} live bytes of the ink at each shown bound */
export function inkCurve(app, ink) {
	const model = ink.model && hasBoundsOf(ink.model, app.shown) ? ink.model : app.shown,
		mask = bothMasks(ink.mask(model), filterCells(model, app.store.state.filters));
	return liveCurve(model, mask);
}

/** @param {Model} model @param {Model} other @returns {boolean} */
export function hasBoundsOf(model, other) {
	return model.last === other.last && model.cells.bounds.every((time, i) => time === other.cells.bounds[i]);
}

/** @param {Picture} picture @param {Measure} measure @returns {number} of the selection */
export function sumOf({model, selected}, measure) {
	const weights = cellWeights(model, measure);
	return selected.hits.reduce((sum, hit, i) => sum + (hit && weights[i]), 0);
}

/** @param {Picture} picture @returns {{value: number, share: number}} bytes of the selection on whose path the search hits */
export function searchSum(picture) {
	const {node, bytes, count} = picture.model.cells,
		{hits} = picture.selected;
	let value = 0;
	for (let i = 0; i < count; i++) if (hits[i] && picture.hitPaths?.[node[i]]) value += bytes[i];
	return {value, share: value / picture.selected.bytes};
}

/** @param {Picture} picture @returns {string} a sentence for screen readers */
export function describe(picture) {
	const {choice, model, selected} = picture,
		{bounds} = model.cells;
	const when =
		choice.kind === "moment"
			? formatTime(bounds[choice.at])
			: `${formatTime(bounds[choice.from])} to ${formatTime(bounds[choice.to])}, ${classNames(choice.classes)}`;
	return `${picture.title}, ${when}: ${formatBytes(selected.bytes)} in ${formatBlocks(selected.blocks)}`;
}
