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
} from "./cells.js";
import {cellsOnPath} from "./tree.js";
import {formatBytes, formatTime, formatCount} from "./format.js";
import {classNames} from "./store.js";
/** @import {Choice, Filter, Measure, Model, Selected} from "./cells.js" */
/** @import {Palette} from "./palette.js" */
/** @import {Source} from "./request.js" */
/** @import {Item, Selection, State, Store} from "./store.js" */

/**
 * @typedef {object} Picture
 * @property {Model} model whose bounds the selection has
 * @property {Model} shown of the timeline
 * @property {Choice} choice @property {Uint8Array | null} mask of the filters @property {Selected} selected
 * @property {boolean} isPeak whether the moment is the exact peak @property {boolean} isWhole whether the window is the whole run
 * @property {Uint8Array | null} hitPaths for each node whether the search hits its path @property {Uint8Array | null} hitFrames for each function
 * @property {Uint8Array | null} itemMask cells of the selected frame or row
 * @property {string} title the selection in words @property {string} made mark before sums of what was made @property {string} live mark before live bytes
 * @property {boolean} isUncertain live bytes may be too large @property {number} passMs time of the pass over the cells
 *
 * @typedef {object} App
 * @property {Store} store @property {Source} source @property {any} trace
 * @property {Model} whole @property {Model} shown @property {string | undefined} filter words of the state, as a request has them
 * @property {Picture} picture @property {Picture} detail of the flame: as picture, or of the finer cells of its focus @property {Palette} palette
 * @property {(ink: Ink | null) => void} hover @property {Ink | null} ink what the pointer is on @property {number} cursor a bound under the pointer, or -1
 * @property {(text: string) => void} say to screen readers @property {(text: string) => void} warn a line of text
 * @property {(filter: Filter) => string} groupWords @property {() => boolean} isResidentOff whether resident memory is left out of the timeline
 * @property {() => void} redraw @property {() => void} redrawTimeline
 *
 * @typedef {{key: string, mask: (model: Model) => Uint8Array, model?: Model}} Ink cells whose live curve is drawn; `key` tells one from another; `model` has them, if its bounds are the shown ones
 */

/**
 * @param {Pick<App, "shown">} app
 * @param {Selection} selection
 * @returns {boolean} whether cells of the shown range have these times as bounds
 */
function isInShown(app, selection) {
	const {bounds, peak} = app.shown.cells;
	if (selection.kind === "peak") return peak >= 0;
	const times = selection.kind === "moment" ? [selection.at] : [selection.from, selection.to];
	return times.every((time) => bounds.includes(time));
}

/** @param {Model} model @param {Selection} selection @returns {Choice} */
export function choose(model, selection) {
	if (selection.kind === "peak") return {kind: "moment", at: Math.max(0, model.cells.peak)};
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

/** @param {Choice} choice @param {boolean} isWhole @param {boolean} isPeak @param {string} time @returns {string} */
function titleOf(choice, isWhole, isPeak, time) {
	if (choice.kind === "moment") return isPeak ? `live at ${time}, the peak` : `live at ${time}`;
	if (isWhole && choice.classes === (AIFI | AIFO)) return "all blocks of the run";
	if (isWhole && choice.classes === AIFO) return "never freed";
	return (
		CLASS_WORDS.filter(([bit]) => choice.classes & Number(bit))
			.map(([, words]) => words)
			.join("; ") || "nothing"
	);
}

/**
 * @param {Model} model
 * @param {Item} item
 * @param {State} state
 * @returns {Uint8Array} cells of a frame or row; the last answer is kept
 */
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

/** @param {any} trace @param {string[]} kinds */
function hasState(trace, kinds) {
	return (trace.state ?? []).some((/** @type {any} */ row) => kinds.includes(row.kind));
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
		{bounds, peak} = model.cells;
	const isPeak = isMoment && choice.at === peak,
		isWhole = !isMoment && model.cells.whole && choice.from === 0 && choice.to === model.last;
	const from = isMoment ? 0 : choice.from,
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
		isPeak,
		isWhole,
		hitFrames,
		passMs,
		hitPaths: hitFrames && pathsWith(model, (i) => hitFrames[i] === 1),
		itemMask: state.item && itemCells(model, state.item, state),
		title: titleOf(choice, isWhole, isPeak, formatTime(bounds[isMoment ? choice.at : 0])),
		made: sample || (isLosing ? "≥\u2009" : ""),
		live: sample,
		isUncertain: hasState(app.trace, UNCERTAIN) && (isLosing || !hasState(app.trace, LOSING)),
	};
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
	if (state.search.trim()) {
		return {
			key: `search ${state.search}`,
			mask: (model) => {
				const frames = findFrames(model, state.search),
					paths = pathsWith(model, (i) => frames !== null && frames[i] === 1),
					{node} = model.cells;
				return maskWhere(model, (i) => paths[node[i]] === 1);
			},
		};
	}
	if (state.filters.length)
		return {key: "filters", mask: (model) => /** @type {Uint8Array} */ (filterCells(model, state.filters))};
	return null;
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

/**
 * @param {Picture} picture
 * @returns {{value: number, share: number}} bytes of the selection on whose path the search hits
 */
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
	return `${picture.title}, ${when}: ${formatBytes(selected.bytes)} in ${formatCount(selected.blocks)} blocks`;
}
