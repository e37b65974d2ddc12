// SPDX-License-Identifier: MIT
// Which are the largest: rows of anything, with callers and callees. Only rows that can be seen are in the document.
import {
	addBelow,
	bothMasks,
	cached,
	filterCells,
	findSeries,
	followGroups,
	groupCells,
	groupCurve,
	groupName,
	groupPeaks,
	largestOf,
	liveCurve,
	sumGroups,
	SERIES_MAX,
} from "./cells.js";
import {formatBytes, formatChange, formatCount, formatMeasure, formatShare, MISSING} from "./format.js";
import {byId, make, name, prepareCanvas} from "./elements.js";
import {Grid, nameColumn, numberColumn, ROW} from "./grid.js";
import {cutText} from "./hostile.js";
import {listChildren, neighboursOf} from "./tree.js";
import {groupInk, selectionMark} from "./picture.js";

/** Pixels. */
const SPARK_HEIGHT = 18;
/** Curves of rows that are kept. */
const CURVES_MAX = 400;
/** Callers and callees that are shown, each. */
const NEIGHBOURS_MAX = 8;
const NONE = new Float64Array(0);

/** @type {Column[]} */
const TABLE_COLUMNS = [
	nameColumn(),
	numberColumn(
		"bytes",
		"Selected",
		"Bytes of the selection",
		(s, key) => s.bytes[key],
		(value, app) => selectionMark(app.picture) + formatBytes(value),
	),
	{id: "share", title: "", hint: "", class: "column-share", isSortable: false},
	numberColumn(
		"blocks",
		"Blocks",
		"Blocks of the selection",
		(s, key) => s.blocks[key],
		(value, app) => selectionMark(app.picture) + formatCount(value),
	),
	numberColumn(
		"mean",
		"Mean",
		"Mean size of these blocks",
		(s, key) => s.bytes[key] / s.blocks[key] || 0,
		(value) => formatBytes(value || null),
	),
	numberColumn(
		"change",
		"Net change",
		"Made here and still there, less older ones that were freed here",
		(s, key) => s.change[key],
		(value, app) => (app.picture.choice.kind === "window" ? formatChange(value) : MISSING),
	),
	numberColumn(
		"made",
		"Made",
		"Bytes that were made in the window; of a moment, in the whole range",
		(s, key) => s.made[key],
		(value, app) => app.picture.made + formatBytes(value),
	),
	numberColumn(
		"calls",
		"Calls",
		"Blocks that were made",
		(s, key) => s.calls[key],
		(value, app) => app.picture.made + formatCount(value),
		true,
	),
	numberColumn(
		"peak",
		"Own peak",
		"At least so many bytes lived at once: the largest at a bound",
		(_, key, table) => table.peakOf(key),
		(value) => (Number.isNaN(value) ? MISSING : `≥\u2009${formatBytes(value)}`),
		true,
	),
	{id: "spark", title: "Live over time", hint: "On a scale of its own", class: "column-spark", isSortable: false},
];

/** @extends {Grid<Row, Column>} */
export class Table extends Grid {
	/** @param {App} app */
	constructor(app) {
		super(app, "table", TABLE_COLUMNS);
		this.detailRows = 0;
		/** @type {GroupSums} */
		this.sums = this.groupSums = {bytes: NONE, blocks: NONE, made: NONE, calls: NONE, change: NONE};
		/** @type {Model | null} whose groups the rows are */
		this.rowsOf = null;
		/** @type {any[]} what the sums were made for: the selection, and what its cells are grouped by */
		this.sumsOf = [];
		/** @type {Map<number, HTMLCanvasElement>} */
		this.curves = new Map();
	}

	/** Makes the sums of the selection, or follows the step of a drag. */
	makeSums() {
		const {picture, store} = this.app,
			{model, choice, selected, mask} = picture,
			isInclusive = store.state.rows === "inclusive",
			grouped = groupCells(model, isInclusive ? "stack" : this.by),
			[before, groupedBefore] = this.sumsOf;
		if (selected.change && selected.change.of === before && groupedBefore === grouped)
			followGroups(model, choice, selected.change, grouped, this.groupSums);
		else this.groupSums = sumGroups(model, choice, selected, grouped, mask);
		this.sumsOf = [selected, grouped];
		this.sums = isInclusive ? sumInclusive(model, this.groupSums) : this.groupSums;
	}

	/** @param {Set<number> | null} known groups that have a row already @returns {Row[]} of all other groups with anything of the selection, or made in it */
	makeRows(known) {
		const {sums, by} = this,
			{model} = this.app.picture,
			rows = [];
		for (let key = 0; key < sums.bytes.length; key++) {
			if ((!sums.blocks[key] && !sums.calls[key]) || known?.has(key)) continue;
			const {name: words, detail, id} = groupName(model, by, key);
			rows.push({key, name: words, detail, id});
		}
		return rows;
	}

	render() {
		this.findWidth();
		const {state} = this.app.store,
			column = this.sorted,
			sign = state.isRising ? 1 : -1;
		const {value} = column,
			{model} = this.app.picture;
		this.makeSums();
		if (!this.app.store.isDragging || !this.known || model !== this.rowsOf) {
			const focused = this.rows[this.focused]?.id;
			this.rows = this.makeRows(null);
			this.rows.sort(
				(a, b) =>
					(value
						? sign * (value(this.sums, a.key, this) - value(this.sums, b.key, this))
						: -sign * (a.name < b.name ? -1 : a.name > b.name ? 1 : 0)) || (a.name < b.name ? -1 : 1),
			);
			if (this.app.isGoingOn) this.focused = Math.max(0, this.rows.findIndex((row) => row.id === focused));
			this.known = new Set(this.rows.map((row) => row.key));
			this.rowsOf = model;
		} else {
			// Rows stay where they were before the drag, and new ones follow.
			const others = this.makeRows(this.known).sort((a, b) => this.sums.bytes[b.key] - this.sums.bytes[a.key]);
			for (const row of others) this.known.add(row.key);
			this.rows.push(...others);
		}
		this.most = Math.max(1, largestOf(this.sums.bytes).value || 0);
		byId("nothing").hidden = this.rows.length > 0;
		this.drawHead();
		if (this.updateRows()) return;
		this.makeDetail();
		this.drawRows();
	}

	/** The callers and callees of the expanded row. */
	makeDetail() {
		const {expanded} = this.app.store.state;
		this.expandedAt = expanded ? this.rows.findIndex((row) => row.id === expanded) : -1;
		this.detail =
			this.expandedAt >= 0 && this.by === "function" ? this.neighbours(this.rows[this.expandedAt]) : null;
		this.detailHeight = this.detail ? this.detailRows * 22 + 40 : 0;
	}

	/** @param {Row} row */
	neighbours(row) {
		const {picture} = this.app,
			{frames} = picture.model.cells,
			found = neighboursOf(picture.model, picture.selected.hits, "bytes", row.key);
		const list = (
			/** @type {string} */ title,
			/** @type {{frame: number, value: number}[]} */ rows,
			/** @type {string} */ none,
		) =>
			make(
				"div.neighbours",
				make("h3", title),
				...rows
					.slice(0, NEIGHBOURS_MAX)
					.map(({frame, value}) =>
						make(
							"div.neighbour",
							make("span.value", formatMeasure(value, "bytes")),
							make("span.share", formatShare(value / found.value)),
							frame < 0
								? make("span.name.faint", none)
								: make(
										"button.link",
										{
											onclick: () =>
												this.app.store.set({rows: "inclusive", expanded: frames[frame].key}),
										},
										name(cutText(frames[frame].short, 120)),
									),
						),
					),
				rows.length > NEIGHBOURS_MAX && make("div.faint", `${rows.length - NEIGHBOURS_MAX} more`),
			);
		this.detailRows = Math.min(NEIGHBOURS_MAX + 1, Math.max(found.callers.length, found.callees.length, 1));
		return make(
			"div.detail",
			list("Callers", found.callers, "start of a thread"),
			list("Callees, towards the allocator", found.callees, "itself"),
		);
	}

	drawRows() {
		super.drawRows();
		this.drawnFor = this.rowsOf;
	}

	/** @param {Row} row */
	looksOf(row) {
		return {
			...super.looksOf(row),
			isHit: this.by === "function" && this.app.picture.hitFrames?.[row.key] === 1,
			onenter: () => this.app.hover(groupInk(this.app, this.app.store.state.rows, row.id)),
		};
	}

	/** @param {Column} column @param {Row} row @returns {HTMLElement} */
	drawCell(column, row) {
		if (column.id === "name")
			return this.drawName(row.name, row.detail, make("span", {class: `swatch ${this.swatchOf(row)}`}));
		const cell = make("div", {role: "gridcell", class: column.class});
		if (column.text) {
			this.updateNumber(cell, column, row);
		} else if (column.id === "share") {
			cell.append(make("div.bar-ground", make("div", {class: `bar ${this.swatchOf(row)}`})));
			this.updateShare(cell, row);
		} else {
			cell.append(make("div.spark", {"aria-hidden": "true"}, make("div"), this.curveOf(row)));
			this.updateSpark(cell);
		}
		return cell;
	}

	/** @param {HTMLElement} cell @param {Column} column @param {Row} row */
	updateNumber(cell, column, row) {
		const value = column.value?.(this.sums, row.key, this) ?? NaN,
			words = column.text?.(value, this.app) ?? "";
		if (cell.textContent !== words) cell.textContent = words;
		if (column.id !== "change") return;
		cell.classList.toggle("more", value > 0);
		cell.classList.toggle("less", value < 0);
	}

	/** @param {HTMLElement} cell @param {Row} row */
	updateShare(cell, row) {
		const ground = /** @type {HTMLElement} */ (cell.firstChild),
			bytes = this.sums.bytes[row.key];
		ground.title = formatShare(bytes / this.app.picture.selected.bytes);
		/** @type {HTMLElement} */ (ground.firstChild).style.width = `${(bytes / (this.most ?? 1)) * 100}%`;
	}

	/** While a window is dragged, numbers change and nothing else. @returns {boolean} whether rows that are seen could be kept */
	updateRows() {
		const {columns} = this,
			elements = [...this.body.children].filter((element) => element.classList.contains("table-row"));
		if (!this.app.store.isDragging || !elements.length || this.drawnFor !== this.rowsOf || this.detail)
			return false;
		this.body.style.height = `${this.rows.length * ROW}px`;
		for (const element of elements) {
			const row = this.rows[Number(/** @type {HTMLElement} */ (element).dataset.index)];
			columns.forEach((column, i) => {
				const cell = /** @type {HTMLElement} */ (element.children[i]);
				if (column.text) this.updateNumber(cell, column, row);
				else if (column.id === "share") this.updateShare(cell, row);
				else if (column.id === "spark") this.updateSpark(cell);
			});
		}
		return true;
	}

	/** @param {number} key @returns {number} the most bytes at once; of functions with callees it is not known */
	peakOf(key) {
		return this.app.store.state.rows === "inclusive" ? NaN : groupPeaks(this.app.picture.model, this.by)[key];
	}

	/** @param {Row} row @returns {string} a class of style.css */
	swatchOf(row) {
		const {by} = this.app.store.state;
		const color = by === this.by ? findSeries(this.app.picture.model, by).ofGroup[row.key] : SERIES_MAX;
		return color === SERIES_MAX ? "others" : `series-${color}`;
	}

	/** Shows the selection on a curve of live bytes over the shown time. @param {HTMLElement} cell */
	updateSpark(cell) {
		const {choice, model, isWhole} = this.app.picture,
			{bounds} = model.cells,
			span = bounds[model.last] - bounds[0],
			mark = /** @type {HTMLElement} */ (cell.firstChild?.firstChild);
		const place = (/** @type {number} */ bound) => ((bounds[bound] - bounds[0]) / span) * 100;
		const [from, to] = choice.kind === "moment" ? [choice.at, choice.at] : [choice.from, choice.to];
		mark.className = choice.kind === "moment" ? "spark-moment" : "spark-window";
		mark.hidden = isWhole;
		mark.style.left = `${place(from)}%`;
		mark.style.width = choice.kind === "moment" ? "1px" : `${place(to) - place(from)}%`;
	}

	/** @param {Row} row @returns {HTMLCanvasElement} its curve, which a drag does not change: it is kept */
	curveOf(row) {
		const {picture, palette, store} = this.app,
			{by, rows, filters} = store.state,
			about = [picture.model, palette, by, rows, filters, this.isWide];
		if (!this.curvesOf || this.curvesOf.some((value, i) => value !== about[i])) {
			this.curvesOf = about;
			this.curves = new Map();
		}
		const known = this.curves.get(row.key) ?? this.drawCurve(row);
		if (this.curves.size > CURVES_MAX) this.curves.clear();
		this.curves.set(row.key, known);
		return known;
	}

	/** @param {Row} row @returns {HTMLCanvasElement} */
	drawCurve(row) {
		const {picture, palette} = this.app,
			{model} = picture,
			{bounds} = model.cells,
			width = this.isWide ? 150 : 110;
		const canvas = make("canvas"),
			context = prepareCanvas(canvas, width, SPARK_HEIGHT);
		const curve =
			this.app.store.state.rows === "inclusive"
				? liveCurve(
						model,
						bothMasks(filterCells(model, [{by: "function", key: row.id, hide: false}]), picture.mask),
					)
				: groupCurve(model, this.by, row.key, picture.mask);
		const most = largestOf(curve).value || 1,
			span = bounds[model.last] - bounds[0];
		const x = (/** @type {number} */ bound) => ((bounds[bound] - bounds[0]) / span) * width;
		context.beginPath();
		context.moveTo(0, SPARK_HEIGHT);
		curve.forEach((value, i) => context.lineTo(x(i), SPARK_HEIGHT - (value / most) * (SPARK_HEIGHT - 1)));
		context.lineTo(width, SPARK_HEIGHT);
		const color = this.swatchOf(row);
		context.fillStyle = color === "others" ? palette.ink3 : palette.series[Number(color.slice(-1))];
		context.fill();
		return canvas;
	}

	/** Opens or closes the callers and callees. @param {number} index */
	expand(index) {
		const row = this.rows[index];
		if (row && this.by === "function")
			this.app.store.set({expanded: this.app.store.state.expanded === row.id ? "" : row.id});
	}
}

/** @param {Model} model @returns {Uint8Array} for each node whether no caller of it is the same function */
function outermostCalls(model) {
	return cached(model, "outermost calls", () => {
		const {parent, frame, nodeCount, frames} = model.cells,
			{begins, children} = listChildren(parent, nodeCount),
			depths = new Uint32Array(frames.length),
			found = new Uint8Array(nodeCount),
			// Nodes that are to be entered, and as -1 - node those that are to be left.
			waiting = Array.from(children.subarray(begins[nodeCount]));
		while (waiting.length) {
			const next = /** @type {number} */ (waiting.pop()),
				node = next < 0 ? -1 - next : next;
			if (next < 0) {
				depths[frame[node]]--;
				continue;
			}
			found[node] = Number(depths[frame[node]]++ === 0);
			waiting.push(-1 - node);
			for (let i = begins[node]; i < begins[node + 1]; i++) waiting.push(children[i]);
		}
		return found;
	});
}

/**
 * Sums of each function with all that is below it. A stack counts once for a function, and begins with the one that asked, as in reports.
 * @param {Model} model
 * @param {GroupSums} byStack
 * @returns {GroupSums}
 */
export function sumInclusive(model, byStack) {
	const {frame, frames, nodeCount} = model.cells,
		isOutermost = outermostCalls(model),
		make = () => new Float64Array(frames.length);
	const sums = {bytes: make(), blocks: make(), made: make(), calls: make(), change: make()};
	for (const name of /** @type {(keyof GroupSums)[]} */ (Object.keys(sums))) {
		const below = byStack[name].slice();
		addBelow(model, below);
		for (let node = 0; node < nodeCount; node++) if (isOutermost[node]) sums[name][frame[node]] += below[node];
	}
	return sums;
}
