// SPDX-License-Identifier: MIT
// A table whose rows are in the document only while they can be seen. Views extend it: what its columns are, and what a cell has.
import {byId, fill, listen, make, name} from "./elements.js";
import {cutText, TITLE_MAX} from "./hostile.js";
import {GROUPING_WORDS} from "./legend.js";

/** Pixels. */
export const ROW = 28;
const HEAD = 32;
/** Rows above and below those that are seen. */
const SPARE = 6;
/** Columns that need a pane as wide as this. Pixels. */
const WIDE_TABLE = 1160;

/** @template V, T @param {string} id @param {string} title @param {string} hint @param {V} value @param {T} text @param {boolean} [isWide] @returns a column of numbers */
export function numberColumn(id, title, hint, value, text, isWide = false) {
	return {id, title, hint, class: `column-number ${id}`, isSortable: true, value, text, isWide};
}

/** @param {string} [title] @returns the column of names */
export function nameColumn(title = "") {
	return {id: "name", title, hint: "", class: "column-name", isSortable: true};
}

/** @template {GridRow} R @template {GridColumn} C */
export class Grid {
	/** @param {App} app @param {string} id of its box @param {C[]} columns */
	constructor(app, id, columns) {
		this.app = app;
		this.allColumns = columns;
		this.isWide = false;
		this.box = byId(id);
		this.head = make("div.table-head", {role: "row"});
		this.body = make("div.table-body", {role: "rowgroup"});
		this.box.replaceChildren(make("div", {role: "rowgroup", class: "table-top"}, this.head), this.body);
		/** @type {R[]} */
		this.rows = [];
		this.focused = 0;
		/** Below the row that is opened, if one is. @type {HTMLElement | null} */
		this.detail = null;
		this.expandedAt = -1;
		this.detailHeight = 0;
		/** What the head was drawn for. */
		this.headOf = "";
		listen(this.box, {scroll: () => this.drawRows(), keydown: (event) => this.key(event)});
	}

	/** @returns {C[]} those that are shown */
	get columns() {
		return this.allColumns.filter((column) => !column.isWide || this.isWide);
	}

	findWidth() {
		this.isWide = this.box.clientWidth >= WIDE_TABLE;
		this.box.classList.toggle("wide", this.isWide);
	}

	/** @returns {C} by which rows are sorted */
	get sorted() {
		return this.columns.find((column) => column.id === this.app.store.state.sort) ?? this.columns[1];
	}

	/** @returns {Grouping} what the rows are, if they are groups */
	get by() {
		const {rows} = this.app.store.state;
		return rows === "inclusive" ? "function" : rows;
	}

	/** @param {C} column @returns {string} */
	titleOf(column) {
		return column.title || (column.id === "name" ? GROUPING_WORDS[this.by] : "");
	}

	/** @param {C} _column @param {R} _row @returns {HTMLElement} */
	drawCell(_column, _row) {
		return make("div");
	}

	/** @param {string} words @param {string} detail @param {HTMLElement} [before] @returns {HTMLElement} */
	drawName(words, detail, before) {
		return make(
			"div",
			{role: "gridcell", class: "column-name", title: cutText(`${words} ${detail}`, TITLE_MAX)},
			before,
			name(cutText(words, 200)),
			" ",
			make("bdi.row-detail", cutText(detail, 100)),
		);
	}

	/** @param {R} row @returns {{isSelected: boolean, isHit?: boolean, onenter?: () => void}} */
	looksOf(row) {
		const {item, rows} = this.app.store.state;
		return {isSelected: item?.kind === "group" && item.by === rows && item.key === row.id};
	}

	/** @param {number} index of a row that was clicked */
	choose(index) {
		const row = this.rows[index],
			{store} = this.app;
		this.focused = index;
		if (row) store.set({item: {kind: "group", by: store.state.rows, key: row.id}});
	}

	/** @param {number} _index of a row that was clicked twice */
	expand(_index) {}

	drawHead() {
		const {store} = this.app,
			{state} = store,
			{columns, sorted} = this;
		this.box.setAttribute("aria-rowcount", String(this.rows.length + 1));
		const about = `${columns.map((column) => this.titleOf(column))} ${sorted?.id} ${state.isRising}`;
		if (about === this.headOf) return;
		this.headOf = about;
		fill(
			this.head,
			...columns.map((column) => {
				const isSorted = column === sorted,
					title = this.titleOf(column);
				const direction = isSorted ? (state.isRising ? "ascending" : "descending") : "none";
				const cell = make("div", {
					role: "columnheader",
					class: column.class,
					...(column.isSortable ? {"aria-sort": direction} : {}),
				});
				if (!title) cell.append(make("span.hidden-text", "Share"));
				else if (!column.isSortable) cell.append(title);
				else
					cell.append(
						make(
							"button.sorter",
							{
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

	/** @param {R} row @param {number} index @returns {HTMLElement} */
	drawRow(row, index) {
		const {isSelected, isHit, onenter} = this.looksOf(row);
		const element = make(
			"div",
			{
				class: isHit ? "table-row hit" : "table-row",
				role: "row",
				"aria-rowindex": index + 2,
				"aria-selected": isSelected,
				tabindex: index === this.focused ? 0 : -1,
				"data-index": index,
				onclick: () => this.choose(index),
				ondblclick: () => this.expand(index),
				onpointerenter: () => onenter?.(),
				onpointerleave: () => this.app.hover(null),
			},
			...this.columns.map((column) => this.drawCell(column, row)),
		);
		element.style.top = `${this.topOf(index)}px`;
		return element;
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
