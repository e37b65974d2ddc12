// SPDX-License-Identifier: MIT
// Which are the largest: rows of anything, with callers and callees. Only rows that can be seen are in the document.
import {
	addBelow,
	bothMasks,
	cached,
	filterCells,
	findSeries,
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
import {byId, fill, make, name, prepareCanvas} from "./elements.js";
import {cutText, TITLE_MAX} from "./hostile.js";
import {listChildren, neighboursOf} from "./tree.js";
import {itemCells, selectionMark} from "./picture.js";
import {GROUPING_WORDS} from "./legend.js";
/** @import {GroupSums, Grouping, Model} from "./cells.js" */
/** @import {App, Ink, Picture} from "./picture.js" */

/** Pixels. */
const ROW = 28,
	HEAD = 32,
	SPARK_HEIGHT = 18;
/** Rows above and below those that are seen. */
const SPARE = 6;
/** Curves of rows that are kept. */
const CURVES_MAX = 400;
/** Callers and callees that are shown, each. */
const NEIGHBOURS_MAX = 8;
/** Columns that need a pane as wide as this. Pixels. */
const WIDE_TABLE = 1100;

/**
 * @typedef {object} Row
 * @property {number} key group @property {string} name @property {string} detail @property {string} id
 * @property {number} bytes selected @property {number} blocks @property {number} change @property {number} made @property {number} calls @property {number} peak
 *
 * @typedef {{id: string, title: string, hint: string, class: string, isWide?: boolean, isSortable: boolean, value?: (row: Row) => number, text?: (row: Row, app: App) => string}} Column
 */

/** @type {Column[]} */
const TABLE_COLUMNS = [
	{id: "name", title: "", hint: "", class: "column-name", isSortable: true},
	{
		id: "bytes",
		title: "Selected",
		hint: "Bytes of the selection",
		class: "column-number bold",
		isSortable: true,
		value: (row) => row.bytes,
		text: (row, app) => selectionMark(app.picture) + formatBytes(row.bytes),
	},
	{id: "share", title: "", hint: "", class: "column-share", isSortable: false},
	{
		id: "blocks",
		title: "Blocks",
		hint: "Blocks of the selection",
		class: "column-number",
		isSortable: true,
		value: (row) => row.blocks,
		text: (row, app) => selectionMark(app.picture) + formatCount(row.blocks),
	},
	{
		id: "mean",
		title: "Mean",
		hint: "Mean size of these blocks",
		class: "column-number narrow-off",
		isSortable: true,
		value: (row) => row.bytes / row.blocks || 0,
		text: (row) => formatBytes(row.blocks ? row.bytes / row.blocks : null),
	},
	{
		id: "change",
		title: "Net change",
		hint: "Made here and still there, less older ones that were freed here",
		class: "column-number",
		isSortable: true,
		value: (row) => row.change,
		text: (row, app) => (app.picture.choice.kind === "window" ? formatChange(row.change) : MISSING),
	},
	{
		id: "made",
		title: "Made",
		hint: "Bytes that were made in the window; of a moment, in the whole range",
		class: "column-number",
		isSortable: true,
		value: (row) => row.made,
		text: (row, app) => app.picture.made + formatBytes(row.made),
	},
	{
		id: "calls",
		title: "Calls",
		hint: "Blocks that were made",
		class: "column-number",
		isWide: true,
		isSortable: true,
		value: (row) => row.calls,
		text: (row, app) => app.picture.made + formatCount(row.calls),
	},
	{
		id: "peak",
		title: "Own peak",
		hint: "At least so many bytes lived at once: the largest at a bound",
		class: "column-number",
		isWide: true,
		isSortable: true,
		value: (row) => row.peak,
		text: (row) => `≥\u2009${formatBytes(row.peak)}`,
	},
	{id: "spark", title: "Live over time", hint: "On a scale of its own", class: "column-spark", isSortable: false},
];

export class Table {
	/** @param {App} app */
	constructor(app) {
		this.app = app;
		this.box = byId("table");
		this.head = make("div", {class: "table-head", role: "row"});
		this.body = make("div", {class: "table-body", role: "rowgroup"});
		this.box.replaceChildren(make("div", {role: "rowgroup", class: "table-top"}, this.head), this.body);
		/** @type {Row[]} */
		this.rows = [];
		this.focused = 0;
		this.detailHeight = 0;
		this.detailRows = 0;
		this.expandedAt = -1;
		/** @type {Map<number, HTMLCanvasElement>} */
		this.curves = new Map();
		/** What the head was drawn for. */
		this.headOf = "";
		this.box.addEventListener("scroll", () => this.drawRows());
		this.box.addEventListener("keydown", (event) => this.key(event));
	}

	/** @returns {Grouping} what the rows are */
	get by() {
		return this.app.store.state.rows === "inclusive" ? "function" : this.app.store.state.rows;
	}

	/** @returns {Row[]} with anything of the selection, or made in it */
	makeRows() {
		const {picture, store} = this.app,
			{model} = picture,
			{by} = this,
			isInclusive = store.state.rows === "inclusive";
		const grouped = isInclusive ? null : groupCells(model, by);
		const sums = grouped
			? sumGroups(model, picture.choice, picture.selected, grouped, picture.mask)
			: sumInclusive(model, picture);
		const peaks = isInclusive ? null : groupPeaks(model, by),
			rows = [];
		for (let key = 0; key < sums.bytes.length; key++) {
			if (!sums.blocks[key] && !sums.calls[key]) continue;
			const {name: words, detail, id} = groupName(model, by, key);
			rows.push({
				key,
				name: words,
				detail,
				id,
				bytes: sums.bytes[key],
				blocks: sums.blocks[key],
				change: sums.change[key],
				made: sums.made[key],
				calls: sums.calls[key],
				peak: peaks ? peaks[key] : NaN,
			});
		}
		return rows;
	}

	render() {
		const {state} = this.app.store,
			column = TABLE_COLUMNS.find((other) => other.id === state.sort) ?? TABLE_COLUMNS[1],
			sign = state.isRising ? 1 : -1;
		const {value} = column;
		this.rows = this.makeRows();
		if (!this.app.store.isDragging || !this.order) {
			this.rows.sort(
				(a, b) =>
					(value ? sign * (value(a) - value(b)) : -sign * (a.name < b.name ? -1 : a.name > b.name ? 1 : 0)) ||
					(a.name < b.name ? -1 : 1),
			);
			this.order = new Map(this.rows.map((row, i) => [row.key, i]));
		} else {
			this.keepOrder(this.order);
		}
		this.most = this.rows.reduce((most, row) => Math.max(most, row.bytes), 1);
		this.isWide = this.box.clientWidth >= WIDE_TABLE;
		byId("nothing").hidden = this.rows.length > 0;
		this.drawHead();
		this.makeDetail();
		this.drawRows();
	}

	/** Rows stay where they were before the drag; new ones follow. @param {Map<number, number>} order places of groups */
	keepOrder(order) {
		/** @type {Row[]} */
		const known = [],
			/** @type {Row[]} */ others = [];
		for (const row of this.rows) {
			const place = order.get(row.key);
			if (place === undefined) others.push(row);
			else known[place] = row;
		}
		others.sort((a, b) => b.bytes - a.bytes);
		this.rows = known.filter(Boolean).concat(others);
	}

	get columns() {
		return TABLE_COLUMNS.filter((column) => !column.isWide || this.isWide);
	}

	drawHead() {
		const {store} = this.app,
			{state} = store;
		this.box.setAttribute("aria-rowcount", String(this.rows.length + 1));
		this.box.classList.toggle("wide", Boolean(this.isWide));
		const about = `${this.by} ${state.sort} ${state.isRising} ${this.isWide}`;
		if (about === this.headOf) return;
		this.headOf = about;
		fill(
			this.head,
			...this.columns.map((column) => {
				const isSorted = column.id === state.sort,
					title = column.id === "name" ? GROUPING_WORDS[this.by] : column.title;
				const direction = isSorted ? (state.isRising ? "ascending" : "descending") : "none";
				const cell = make("div", {
					role: "columnheader",
					class: column.class,
					...(column.isSortable ? {"aria-sort": direction} : {}),
				});
				if (!title) cell.append(make("span", {class: "hidden-text"}, "Share"));
				else if (!column.isSortable) cell.append(title);
				else
					cell.append(
						make(
							"button",
							{
								class: "sorter",
								title: column.hint,
								onclick: () =>
									store.set({sort: column.id, isRising: isSorted && !state.isRising}, "replace"),
							},
							`${title[0].toUpperCase()}${title.slice(1)}${isSorted ? (state.isRising ? " ↑" : " ↓") : ""}`,
						),
					);
				return cell;
			}),
		);
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
				"div",
				{class: "neighbours"},
				make("h3", {}, title),
				...rows
					.slice(0, NEIGHBOURS_MAX)
					.map(({frame, value}) =>
						make(
							"div",
							{class: "neighbour"},
							make("span", {class: "value"}, formatMeasure(value, "bytes")),
							make("span", {class: "share"}, formatShare(value / found.value)),
							frame < 0
								? make("span", {class: "name faint"}, none)
								: make(
										"button",
										{
											class: "link",
											onclick: () =>
												this.app.store.set({rows: "inclusive", expanded: frames[frame].key}),
										},
										name(cutText(frames[frame].short, 120)),
									),
						),
					),
				rows.length > NEIGHBOURS_MAX && make("div", {class: "faint"}, `${rows.length - NEIGHBOURS_MAX} more`),
			);
		this.detailRows = Math.min(NEIGHBOURS_MAX + 1, Math.max(found.callers.length, found.callees.length, 1));
		return make(
			"div",
			{class: "detail"},
			list("Callers", found.callers, "start of a thread"),
			list("Callees, towards the allocator", found.callees, "itself"),
		);
	}

	/** @param {number} index @returns {number} pixels from the top of the body */
	topOf(index) {
		return index * ROW + (this.expandedAt >= 0 && index > this.expandedAt ? this.detailHeight : 0);
	}

	drawRows() {
		const {scrollTop, clientHeight} = this.box,
			{rows} = this;
		this.body.style.height = `${rows.length * ROW + this.detailHeight}px`;
		const first = Math.max(0, Math.floor((scrollTop - this.detailHeight) / ROW) - SPARE),
			last = Math.min(rows.length, Math.ceil((scrollTop + clientHeight - HEAD) / ROW) + SPARE);
		const hadFocus =
			this.body.contains(document.activeElement) && document.activeElement?.classList.contains("table-row");
		const elements = [];
		for (let i = first; i < last; i++) {
			elements.push(this.drawRow(rows[i], i));
			if (i === this.expandedAt && this.detail) {
				this.detail.style.top = `${(i + 1) * ROW}px`;
				elements.push(this.detail);
			}
		}
		fill(this.body, ...elements);
		if (hadFocus) this.focusRow();
	}

	/** @param {Row} row @param {number} index @returns {HTMLElement} */
	drawRow(row, index) {
		const {app} = this,
			{item} = app.store.state,
			isSelected = item?.kind === "group" && item.by === app.store.state.rows && item.key === row.id;
		const element = make(
			"div",
			{
				class: "table-row",
				role: "row",
				"aria-rowindex": index + 2,
				"aria-selected": String(isSelected),
				tabindex: index === this.focused ? 0 : -1,
				"data-index": index,
				onclick: () => this.choose(index),
				ondblclick: () => this.expand(index),
				onpointerenter: () => app.hover(this.inkOf(row)),
				onpointerleave: () => app.hover(null),
			},
			...this.columns.map((column) => this.drawCell(column, row)),
		);
		const {hitFrames} = app.picture;
		element.classList.toggle("hit", this.by === "function" && hitFrames?.[row.key] === 1);
		element.style.top = `${this.topOf(index)}px`;
		return element;
	}

	/** @param {Column} column @param {Row} row @returns {HTMLElement} */
	drawCell(column, row) {
		const cell = make("div", {role: "gridcell", class: column.class});
		if (column.text) {
			cell.textContent = column.id === "peak" && Number.isNaN(row.peak) ? MISSING : column.text(row, this.app);
			if (column.id === "change" && this.app.picture.choice.kind === "window")
				cell.classList.add(row.change > 0 ? "more" : row.change < 0 ? "less" : "none");
		} else if (column.id === "name") {
			cell.append(
				make("span", {class: `swatch ${this.swatchOf(row)}`}),
				name(cutText(row.name, 200)),
				" ",
				make("bdi", {class: "row-detail"}, cutText(row.detail, 100)),
			);
			cell.title = cutText(`${row.name} ${row.detail}`, TITLE_MAX);
		} else if (column.id === "share") {
			const bar = make("div", {class: `bar ${this.swatchOf(row)}`});
			bar.style.width = `${(row.bytes / (this.most ?? 1)) * 100}%`;
			cell.append(
				make(
					"div",
					{class: "bar-ground", title: formatShare(row.bytes / this.app.picture.selected.bytes)},
					bar,
				),
			);
		} else {
			cell.append(this.drawSpark(row));
		}
		return cell;
	}

	/** @param {Row} row @returns {string} a class of style.css */
	swatchOf(row) {
		const {by} = this.app.store.state;
		const color = by === this.by ? findSeries(this.app.picture.model, by).ofGroup[row.key] : SERIES_MAX;
		return color === SERIES_MAX ? "others" : `series-${color}`;
	}

	/** @param {Row} row @returns {HTMLElement} live bytes over the shown time, with the selection */
	drawSpark(row) {
		const {choice, model, isWhole} = this.app.picture,
			{bounds} = model.cells,
			span = bounds[model.last] - bounds[0];
		const place = (/** @type {number} */ bound) => ((bounds[bound] - bounds[0]) / span) * 100;
		const mark = make("div", {class: choice.kind === "moment" ? "spark-moment" : "spark-window"}),
			[from, to] = choice.kind === "moment" ? [choice.at, choice.at] : [choice.from, choice.to];
		mark.hidden = isWhole;
		mark.style.left = `${place(from)}%`;
		mark.style.width = choice.kind === "moment" ? "1px" : `${place(to) - place(from)}%`;
		return make("div", {class: "spark", "aria-hidden": "true"}, mark, this.curveOf(row));
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
		const canvas = make("canvas", {}),
			context = prepareCanvas(canvas, width, SPARK_HEIGHT);
		const curve =
			this.app.store.state.rows === "inclusive"
				? inclusiveCurve(model, row.key, picture.mask)
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

	/** @param {Row} row @returns {Ink} */
	inkOf(row) {
		const by = this.app.store.state.rows;
		return {
			key: `row ${by} ${row.id}`,
			mask: (model) => itemCells(model, {kind: "group", by, key: row.id}, this.app.store.state),
		};
	}

	/** @param {number} index */
	choose(index) {
		const row = this.rows[index];
		if (!row) return;
		this.focused = index;
		this.app.store.set({item: {kind: "group", by: this.app.store.state.rows, key: row.id}});
	}

	/** Opens or closes the callers and callees. @param {number} index */
	expand(index) {
		const row = this.rows[index];
		if (row && this.by === "function")
			this.app.store.set({expanded: this.app.store.state.expanded === row.id ? "" : row.id});
	}

	/** @param {KeyboardEvent} event */
	key(event) {
		if (!(/** @type {HTMLElement} */ (event.target).classList.contains("table-row"))) return;
		const page = Math.max(1, Math.floor(this.box.clientHeight / ROW) - 2);
		const steps = /** @type {Record<string, number>} */ ({
			ArrowDown: 1,
			ArrowUp: -1,
			PageDown: page,
			PageUp: -page,
			Home: -Infinity,
			End: Infinity,
		});
		if (event.key in steps) this.moveFocus(steps[event.key]);
		else if (event.key === "Enter") this.expand(this.focused);
		else if (event.key === " ") this.choose(this.focused);
		else return;
		event.preventDefault();
	}

	/** @param {number} by rows */
	moveFocus(by) {
		this.focused = Math.max(0, Math.min(this.rows.length - 1, this.focused + by));
		const top = this.topOf(this.focused),
			{scrollTop, clientHeight} = this.box;
		if (top < scrollTop) this.box.scrollTop = top;
		else if (top + ROW > scrollTop + clientHeight - HEAD) this.box.scrollTop = top + ROW - clientHeight + HEAD;
		this.drawRows();
		this.focusRow();
	}

	focusRow() {
		const row = this.body.querySelector(`[data-index="${this.focused}"]`);
		if (row instanceof HTMLElement) row.focus({preventScroll: true});
	}
}

/** @param {Model} model @param {string} key of a function @returns {Uint8Array} cells on whose path it is */
function inclusiveMask(model, key) {
	return /** @type {Uint8Array} */ (filterCells(model, [{by: "function", key, hide: false}]));
}

/** @param {Model} model @param {number} frame @param {Uint8Array | null} mask @returns {Float64Array} */
function inclusiveCurve(model, frame, mask) {
	return liveCurve(model, bothMasks(inclusiveMask(model, model.cells.frames[frame].key), mask));
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
 * @param {Picture} picture
 * @returns {GroupSums}
 */
function sumInclusive(model, picture) {
	const byNode = sumGroups(model, picture.choice, picture.selected, groupCells(model, "stack"), picture.mask);
	const {frame, frames, nodeCount} = model.cells,
		isOutermost = outermostCalls(model),
		make = () => new Float64Array(frames.length);
	const sums = {bytes: make(), blocks: make(), made: make(), calls: make(), change: make()};
	for (const name of /** @type {(keyof GroupSums)[]} */ (Object.keys(sums))) {
		addBelow(model, byNode[name]);
		for (let node = 0; node < nodeCount; node++)
			if (isOutermost[node]) sums[name][frame[node]] += byNode[name][node];
	}
	return sums;
}
