// SPDX-License-Identifier: MIT
// What the colours mean, and live bytes of each at the cursor, else at the selection. Click filters; hover draws the live curve.
import {earlierCells, findSeries, groupName, residentCurve, seriesCurves, SERIES_MAX} from "./cells.js";
import {formatBytes, formatTime, MISSING} from "./format.js";
import {byId, fill, make, name} from "./elements.js";
import {cutText, TITLE_MAX} from "./hostile.js";
import {groupInk} from "./picture.js";
import {GROUPING_KEYS} from "./store.js";

/** Words for what the timeline and the table are divided by. */
export const GROUPING_WORDS = /** @type {Record<Grouping, string>} */ ({
	...Object.fromEntries(GROUPING_KEYS.map((key) => [key, key])),
	life: "lifetime",
});

/** @param {App} app @param {Filter} filter */
export function toggleFilter(app, filter) {
	const {filters} = app.store.state,
		same = filters.filter((other) => !(other.by === filter.by && other.key === filter.key));
	app.store.set({filters: same.length < filters.length ? same : [...same, filter], item: null});
}

export class Legend {
	/** @param {App} app */
	constructor(app) {
		this.app = app;
		this.box = byId("legend");
		this.by = make(
			"select",
			{
				"aria-label": "Timeline by",
				onchange: () => app.store.set({by: /** @type {any} */ (this.by.value), focus: "", opened: []}),
			},
			...Object.entries(GROUPING_WORDS).map(([value, word]) => make("option", {value}, `by ${word}`)),
		);
		this.when = make("span.when");
		this.list = make("div.legend-rows");
		/** @type {any[]} what the rows were made for */
		this.drawnFor = [];
		this.box.replaceChildren(make("div.legend-head", this.by, this.when), this.list);
	}

	/** @returns {{bound: number, text: string}} the moment whose bytes are shown */
	moment() {
		const {app} = this,
			{choice, model, isPeak, isWhole} = app.picture,
			{bounds, peak} = app.shown.cells;
		const at = (/** @type {number} */ time) => bounds.findLastIndex((/** @type {number} */ bound) => bound <= time);
		if (app.cursor >= 0) return {bound: app.cursor, text: `live ${formatTime(bounds[app.cursor])}`};
		if (isWhole || isPeak) return {bound: peak, text: "live at the peak"};
		const time = model.cells.bounds[choice.kind === "moment" ? choice.at : choice.to];
		return {bound: at(time), text: `live ${formatTime(time)}`};
	}

	render() {
		const {app} = this,
			{state} = app.store,
			model = app.shown,
			{bound, text} = this.moment();
		const {groups, others} = findSeries(model, state.by),
			curves = seriesCurves(model, state.by, state.filters);
		const valueOf = (/** @type {number} */ i) =>
			bound >= 0 ? app.picture.live + formatBytes(curves[i][bound]) : MISSING;
		this.by.value = state.by;
		this.when.textContent = text;
		const values = [
			...groups.map((_, i) => valueOf(i)),
			...(others ? [valueOf(SERIES_MAX)] : []),
			formatBytes(residentCurve(model)[Math.max(0, bound - 1)]),
		];
		// While the pointer moves, only the values change.
		const about = [model, state.by, state.filters, app.isResidentOff()];
		if (this.drawnFor.length && about.every((value, i) => value === this.drawnFor[i])) {
			this.list.querySelectorAll(".value").forEach((element, i) => {
				if (element.textContent !== values[i]) element.textContent = values[i];
			});
			return;
		}
		this.drawnFor = about;
		/** @type {HTMLElement[]} */
		const rows = groups.map((key, i) =>
			this.row(groupName(model.whole ?? model, state.by, key), `series-${i}`, values[i]),
		);
		if (others) {
			const earlier = state.by === "function" && earlierCells(model.whole ?? model) ? "before the trace" : "",
				words = others > 1 ? `${others} others${earlier && `, one ${earlier}`}` : earlier || "1 other";
			rows.push(this.plainRow(words, "others", values[groups.length]));
		}
		if (!model.cells.resident.every(Number.isNaN))
			rows.push(
				this.plainRow(`resident${app.isResidentOff() ? ", off scale" : ""}`, "resident", values.at(-1) ?? ""),
			);
		fill(this.list, ...rows);
	}

	/** @param {{name: string, detail: string, id: string}} group @param {string} swatch @param {string} value */
	row(group, swatch, value) {
		const {app} = this,
			{by, filters} = app.store.state,
			isOn = filters.some((filter) => filter.by === by && filter.key === group.id);
		return make(
			"button.legend-row",
			{
				"aria-pressed": isOn,
				title: cutText(`${group.name} ${group.detail}`, TITLE_MAX),
				onclick: () => toggleFilter(app, {by, key: group.id, hide: false}),
				onpointerenter: () => app.hover(groupInk(app, by, group.id)),
				onpointerleave: () => app.hover(null),
			},
			make("span", {class: `swatch ${swatch}`}),
			name(cutText(group.name, 80)),
			make("span.value", value),
		);
	}

	/** @param {string} words @param {string} swatch @param {string} value */
	plainRow(words, swatch, value) {
		return make(
			"div.legend-row",
			make("span", {class: `swatch ${swatch}`}),
			make("span.name", words),
			make("span.value", value),
		);
	}
}
