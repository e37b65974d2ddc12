// SPDX-License-Identifier: MIT
// What changed: a flame in two colours, and rows of A, B and B less A. compare.js has the numbers.
import {cached, findFrames, largestOf} from "./cells.js";
import {compareModel, compareRows, isInSpread, makeSide, meanOf, sidesOf} from "./compare.js";
import {byId, fill, make, name} from "./elements.js";
import {Flame} from "./flame.js";
import {formatBytes, formatChange, formatCount, formatGrowth, formatMeasure, formatTime} from "./format.js";
import {Grid, nameColumn, numberColumn} from "./grid.js";
import {cutText, safeText} from "./hostile.js";
import {titleOf} from "./picture.js";

import {cellsOnPath} from "./tree.js";

const WITHOUT = "The other trace is not filtered by process, thread or heap.";

/** @param {number} count @returns {string} with a sign */
function formatMore(count) {
	return (count > 0 ? "+" : "") + formatCount(count);
}

/** @type {ComparedColumn[]} */
const COMPARED_COLUMNS = [
	nameColumn(),
	numberColumn("change", "B − A", "Bytes that B has more", ({bytes: [a, b]}) => b - a, formatChange),
	{id: "share", title: "", hint: "", class: "column-change", isSortable: false},
	numberColumn("a", "A", "Bytes of A", ({bytes}) => bytes[0], formatBytes),
	numberColumn("b", "B", "Bytes of B", ({bytes}) => bytes[1], formatBytes),
	numberColumn("blocks", "Blocks", "Blocks that B has more", ({blocks: [a, b]}) => b - a, formatMore),
	numberColumn("a-blocks", "A, blocks", "Blocks of A", ({blocks}) => blocks[0], formatCount, true),
	numberColumn("b-blocks", "B, blocks", "Blocks of B", ({blocks}) => blocks[1], formatCount, true),
];

/** @extends {Grid<ComparedRow, ComparedColumn>} */
class ComparedTable extends Grid {
	/** @param {Side} a @param {Side} b */
	render(a, b) {
		this.findWidth();
		const {state} = this.app.store,
			{value, id} = this.sorted,
			sign = state.isRising ? 1 : -1,
			// By change, the largest one is first, whether more or less.
			key = (/** @type {ComparedRow} */ row) =>
				id === "change" || id === "blocks" ? Math.abs(value?.(row) ?? 0) : (value?.(row) ?? 0);
		this.hasRuns = a.runs.length + b.runs.length > 2;
		this.rows = compareRows(a, b, state.rows).sort(
			(one, other) =>
				(value ? sign * (key(one) - key(other)) : -sign * one.name.localeCompare(other.name)) ||
				(one.name < other.name ? -1 : 1),
		);
		this.most = largestOf(this.rows.map(({bytes: [first, second]}) => Math.abs(second - first))).value || 1;
		this.drawHead();
		this.drawRows();
	}

	/** @param {ComparedColumn} column @param {ComparedRow} row */
	drawCell(column, row) {
		if (column.id === "name") return this.drawName(row.name, row.detail);
		const cell = make("div", {role: "gridcell", class: column.class}),
			change = row.bytes[1] - row.bytes[0],
			isSame = this.hasRuns && isInSpread(row.runs);
		if (column.text) cell.append(column.text(column.value?.(row) ?? 0));
		else if (isSame) cell.append(make("span.faint", {title: "The runs differ as much by chance"}, "in spread"));
		else {
			const bar = make("div", {class: change > 0 ? "change-more" : "change-less"});
			bar.style.width = `${(Math.abs(change) / (this.most ?? 1)) * 100}%`;
			cell.append(bar);
		}
		if (column.id === "change") cell.classList.add(isSame || !change ? "same" : change > 0 ? "more" : "less");
		return cell;
	}
}

class ComparedFlame extends Flame {
	/** @param {App} app */
	constructor(app) {
		super(app, "compare-flame");
		/** @type {Picture} */
		this.shown = app.picture;
	}

	get picture() {
		return this.shown ?? this.app.picture;
	}

	question() {
		return {
			...super.question(),
			by: /** @type {const} */ ("heap"),
			measure: /** @type {const} */ ("bytes"),
			selected: undefined,
			total: undefined,
		};
	}

	/** @param {Placed} frame */
	changeOf(frame) {
		const [a, b] = sidesOf(frame.colors);
		return (b - a) / (Math.max(a, b) || 1);
	}

	/** @param {number} a @param {number} b @returns {string} */
	tellChange(a, b) {
		const {measure} = this.app.store.state;
		return measure === "bytes" || measure === "peak" ? formatChange(b - a) : formatMore(b - a);
	}

	/** @param {Placed} frame */
	valueOf(frame) {
		return frame.colors ? this.tellChange(...sidesOf(frame.colors)) : "";
	}

	/** @param {Placed} frame */
	tellValue(frame) {
		const {measure} = this.app.store.state,
			[a, b] = sidesOf(frame.colors);
		return frame.colors
			? [
					make("div", make("b", this.tellChange(a, b)), a ? ` ${formatGrowth(a, b)}` : " · only in B"),
					make("div", `A ${formatMeasure(a, measure)}, B ${formatMeasure(b, measure)}`),
				]
			: [];
	}

	/** @param {string} path */
	inkMask(path) {
		const {state} = this.app.store;
		return (/** @type {any} */ model) => cellsOnPath(model, path, {...state, by: "function"});
	}

	/** @param {number} index */
	choose(index) {
		const frame = this.layout.frames[index];
		if (frame?.kind !== "frame") super.choose(index);
		else
			this.app.store.set({
				item: {kind: "group", by: "inclusive", key: this.picture.model.cells.frames[frame.frame].key},
			});
	}
}

export class Compare {
	/** @param {App} app */
	constructor(app) {
		this.app = app;
		this.flame = new ComparedFlame(app);
		this.table = new ComparedTable(app, "compare-table", COMPARED_COLUMNS);
	}

	/** @param {Omit<Side, "isWithout">} side @returns {string} */
	titleOf({model, choice, isWhole, path, runs}) {
		const {app} = this,
			file = safeText(path).split("/").at(-1),
			before = runs.length > 1 ? `mean of ${runs.length} runs, ` : app.trace.traces.length > 1 ? `${file}, ` : "",
			from = choice.kind === "moment" || isWhole ? "" : ` from ${formatTime(model.cells.bounds[choice.from])}`;
		return before + titleOf(model, choice) + from;
	}

	/** @returns {Child} whose numbers the panel has */
	tellOwn() {
		const {store, picture} = this.app,
			other = store.state.view === "compare" && this.app.otherOf();
		return (
			other &&
			make(
				"p.item-place",
				name(
					`Numbers of ${other.isB ? "A" : "B"}: ${this.titleOf({...picture, path: this.app.trace.path, runs: []})}`,
				),
			)
		);
	}

	/** @returns {[Side, Side] | null} A and B */
	sides() {
		const {app} = this,
			{state} = app.store,
			{picture} = app,
			other = app.otherOf();
		if (!other || !app.other) return null;
		const own = {...picture, path: app.trace.path, isWithout: false},
			found = app.other.runs,
			runs = app
				.runsOf(other)
				.map(({trace, isB, selection}, i) => ({
					isB,
					path: found[i].trace.path,
					...cached(found[i].model, `side ${JSON.stringify([selection, state.filters])}`, () =>
						makeSide(found[i].model, selection, state.filters, trace !== state.trace),
					),
				})),
			[a, b] = [false, true].map((isB) => [
				...(isB !== other.isB ? [own] : []),
				...runs.filter((run) => run.isB === isB),
			]);
		return [
			{...a[0], runs: a},
			{...b[0], runs: b},
		];
	}

	render() {
		const {app} = this,
			{state} = app.store,
			other = app.otherOf(),
			sides = this.sides();
		byId("compare").classList.toggle("empty", !sides);
		fill(
			byId("compare-head"),
			...(sides
				? this.drawSides(sides)
				: [
						other
							? "being found …"
							: "Press m, or this button, to keep this selection as A. Then choose another moment, window or trace as B. Shift+drag on the timeline does both.",
					]),
			make(
				"button.button",
				{onclick: () => markOther(app), title: "What is selected now becomes A (m)"},
				"Keep as A ",
				make("kbd", "m"),
			),
			other &&
				make("button.button", {onclick: () => app.store.set({other: {...other, isB: !other.isB}})}, "Swap"),
		);
		byId("nothing").hidden = true;
		if (!sides) return;
		const model = compareModel(...sides, state.measure, state.isFolded),
			[a, b] = sides;
		this.flame.shown = {
			...app.picture,
			model,
			title: `A to B: ${this.flame.tellChange(...totals(sides))}; widths are the larger side`,
			hitFrames: findFrames(model, state.search),
			selected: {...app.picture.selected, hits: new Uint8Array(model.cells.count).fill(1)},
		};
		this.flame.render();
		this.table.render(a, b);
	}

	/** @param {[Side, Side]} sides */
	drawSides(sides) {
		const [a, b] = totals(sides),
			isWithout = sides.some(({runs}) => runs.some((run) => run.isWithout)),
			isSame = sides.some(({runs}) => runs.length > 1) && isInSpread(sides.map(bytesOf)),
			notes = [isSame && "in spread", this.app.other?.said, isWithout && WITHOUT];
		return sides
			.flatMap((side, i) => [
				make("b.side", "AB"[i]),
				name(`${this.titleOf(side)}: `),
				make("b", tellMean(bytesOf(side))),
			])
			.concat(
				make("b", {class: b > a ? "more" : "less"}, `${formatChange(b - a)} ${formatGrowth(a, b)}`),
				...notes.map((note) => make("span.faint", name(cutText(note || "", 200)))),
			);
	}
}

/** @param {number[]} runs bytes @returns {string} their mean and sample standard deviation, as `diff` has them */
function tellMean(runs) {
	const [mean, variance] = meanOf(runs);
	return [mean, Math.sqrt(variance)].slice(0, runs.length).map(formatBytes).join(" ± ");
}

/** @param {Side} side @returns {number[]} bytes of its runs */
function bytesOf({runs}) {
	return runs.map(({selected}) => selected.bytes);
}

/** @param {[Side, Side]} sides @returns {[number, number]} bytes */
function totals([a, b]) {
	return [meanOf(bytesOf(a))[0], meanOf(bytesOf(b))[0]];
}

/** Keeps the selection as A. @param {App} app */
export function markOther(app) {
	const {trace, selection} = app.store.state;
	app.store.set({other: {trace, selection, isB: false}, view: "compare"});
}
