// SPDX-License-Identifier: MIT
// Which single blocks: rows of the server, a page at a time, and all that is known of one of them.
import {byId, make} from "./elements.js";
import {formatBlocks, formatBytes, formatCount, formatTime} from "./format.js";
import {Grid, nameColumn, numberColumn, ROW} from "./grid.js";
import {safeText} from "./hostile.js";
import {askedSelection, selectionMark} from "./picture.js";
import {Replaced} from "./request.js";

/** Rows that are asked for at once, and how many can be reached. */
const PAGE_ROWS = 200,
	REACH_ROWS = 100000;
/** Ends that give a block back. */
const GIVEN_BACK = ["free", "realloc", "destroy", "gap", "conflict"];

/** @param {BlockRow} row @returns {string} */
export function tellEnd(row) {
	return GIVEN_BACK.includes(row.end)
		? formatTime(row.end_ns)
		: row.end === "open"
			? "not freed"
			: `not freed, ${row.end}`;
}

/** @type {BlockColumn[]} */
const BLOCK_COLUMNS = [
	nameColumn("function"),
	numberColumn("size", "Size", "Requested bytes", null, (row) => formatBytes(row.size)),
	numberColumn("address", "Address", "", null, (row) => row.address),
	numberColumn("made", "Made", "When it was allocated", null, (row) =>
		row.birth_ns === undefined ? "before" : formatTime(row.birth_ns),
	),
	numberColumn("lived", "Lived", "Until its end, or the end of the trace", null, (row) =>
		row.birth_ns === undefined ? "–" : formatTime(row.end_ns - row.birth_ns),
	),
	numberColumn("ended", "Ended", "When it was freed", null, tellEnd),
	{id: "line", title: "Lifeline", hint: "", class: "column-spark", isSortable: false},
];

/** @extends {Grid<BlockRow, BlockColumn>} */
export class Blocks extends Grid {
	/** @param {App} app */
	constructor(app) {
		super(app, "blocks", BLOCK_COLUMNS);
		this.rowsOf = "";
		/** Why there are none. */
		this.reason = "";
		/** Pages that are asked for. @type {Set<number>} */
		this.pages = new Set();
	}

	/** @returns {Record<string, string>} what is asked for, but for the page */
	query() {
		const {app} = this,
			{sort, isRising} = app.store.state,
			isKnown = BLOCK_COLUMNS.some(({id}) => id === sort);
		const {query, lacks} = app.panel.asked();
		this.lacks = lacks.length ? `; not told ${lacks}` : "";
		return {
			...query,
			...askedSelection(app.picture),
			sort: !isKnown ? "size" : sort === "name" ? "function" : sort,
			rising: String(Number(isRising)),
		};
	}

	render() {
		if (this.app.store.isDragging) return;
		this.drawHead();
		if (this.app.trace.live) {
			byId("blocks-controls").textContent = this.app.lacking;
			return;
		}
		const query = this.query(),
			key = JSON.stringify([query, this.app.source.held]);
		if (key !== this.rowsOf) {
			this.rowsOf = key;
			this.rows = [];
			this.reason = byId("blocks-controls").textContent = "";
			this.pages.clear();
			this.asked = query;
			this.box.scrollTop = 0;
			this.ask(0);
		}
		this.drawRows();
	}

	/** @param {number} page */
	async ask(page) {
		if (this.pages.has(page)) return;
		this.pages.add(page);
		const {rowsOf} = this,
			{source, store} = this.app;
		try {
			const query = {...this.asked, offset: String(page * PAGE_ROWS), limit: String(PAGE_ROWS)},
				answer = await source.json("blocks", store.state.trace, query);
			if (rowsOf !== this.rowsOf) return;
			this.rows.length = Math.min(answer.blocks, REACH_ROWS);
			answer.rows.forEach(
				(/** @type {any} */ row, /** @type {number} */ i) => (this.rows[page * PAGE_ROWS + i] = row),
			);
			const isMore = answer.blocks > REACH_ROWS,
				mark = selectionMark(this.app.picture);
			byId("blocks-controls").textContent =
				`${mark}${formatBlocks(answer.blocks)}, ${mark}${formatBytes(answer.bytes)}${isMore ? `; the first ${formatCount(REACH_ROWS)} can be reached` : ""}${this.lacks}`;
			this.drawHead();
			this.drawRows();
		} catch (error) {
			this.pages.delete(page);
			this.app.fail(error);
			if (error instanceof Replaced || rowsOf !== this.rowsOf) return;
			this.reason = `No single blocks: ${safeText(/** @type {Error} */ (error).message)}`;
			this.drawRows();
		}
	}

	drawRows() {
		super.drawRows();
		if (!this.rows.length && this.reason) this.body.append(make("p.faint", this.reason));
	}

	/** @param {BlockRow} row @param {number} index */
	drawRow(row, index) {
		if (!row) this.ask(Math.floor(index / PAGE_ROWS));
		if (row) return super.drawRow(row, index);
		const empty = make("div.table-row.faint", "…");
		empty.style.top = `${index * ROW}px`;
		return empty;
	}

	/** @param {BlockRow} row */
	looksOf(row) {
		return {isSelected: this.app.store.state.block === String(row.id)};
	}

	/** @param {number} index */
	choose(index) {
		this.focused = index;
		if (this.rows[index]) this.app.store.set({block: String(this.rows[index].id)});
	}

	/** @param {BlockColumn} column @param {BlockRow} row */
	drawCell(column, row) {
		if (column.id === "name") return this.drawName(safeText(row.function[1]), safeText(row.function[0]));
		if (column.text) return make("div", {role: "gridcell", class: column.class}, column.text(row));
		// From its beginning to its end, on the scale of the timeline.
		const {from, to} = this.app.timeline.range,
			place = (/** @type {number} */ time) => Math.max(0, Math.min(100, ((time - from) / (to - from)) * 100)),
			line = make("div", {class: GIVEN_BACK.includes(row.end) ? "lifeline" : "lifeline open"}),
			begin = place(row.birth_ns ?? from);
		line.style.left = `${begin}%`;
		line.style.width = `${place(row.end_ns) - begin}%`;
		return make("div.lifelines", {role: "gridcell"}, line);
	}
}
