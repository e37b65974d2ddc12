// SPDX-License-Identifier: MIT
// The sentence that answers, and the state of the trace beside it. The server has made both from its report.
import {AIFO} from "./cells.js";
import {keyOf} from "./decode.js";
import {formatBytes, formatCount, formatShare, formatTime} from "./format.js";
import {byId, fill, make, name} from "./elements.js";
import {cutText, safeText, TITLE_MAX} from "./hostile.js";
import {filterName, splitFilters} from "./command.js";
import {WHOLE_RUN} from "./store.js";
import {marksOf} from "./timeline.js";

/** Longer names are cut. Characters. */
const NAME_MAX = 60;
/** Marks of the timeline that the list repeats. */
const MARKS_MAX = 50;
/** Kinds of state that make the chip loud. */
const LOUD = ["losses", "unknown_frees", "order_conflicts", "damage", "sample"];

/** @param {App} app @param {any} pair @returns {string} the short name, if the cells have it */
function shortOf(app, pair) {
	const frame = app.whole.cells.frames.find((other) => other.key === keyOf(pair));
	return cutText(frame?.short ?? safeText(pair[1]), NAME_MAX - 1);
}

/** @param {Trace} trace @returns {string} the mark of estimates */
function mark(trace) {
	return trace.sample_bytes ? "~" : "";
}

/** @param {App} app */
function drawSentence(app) {
	const {trace, store} = app,
		{answer = {}, totals = {}, resident} = trace,
		about = mark(trace);
	const link = (/** @type {string} */ text, /** @type {Partial<State>} */ members) =>
		make("button.answer-link", {onclick: () => store.set({...members, item: members.item ?? null})}, name(text));
	const peak = app.whole.cells.bounds[app.whole.cells.peak] ?? 0;
	if (!trace.events) {
		fill(byId("sentence"), "The trace has no heap calls.");
		return;
	}
	if (trace.live) {
		const {total_bytes: made, outstanding_bytes: there, peak_bytes: most, peak_at_ns: at} = totals;
		fill(
			byId("sentence"),
			`So far ${about}${formatBytes(made)} was made; `,
			link(about + formatBytes(there), {selection: {...WHOLE_RUN, classes: AIFO}}),
			" of it is still there.",
			most && ` At most ${about}${formatBytes(most)} lived at once, at ${formatTime(at)}.`,
		);
		return;
	}
	/** @type {Child[]} */
	const children = [];
	children.push(
		"At most ",
		link(about + formatBytes(totals.peak_bytes), {selection: {kind: "peak"}}),
		` lived at once, at ${formatTime(peak)}`,
	);
	if (answer.peak_function) {
		const item = /** @type {const} */ ({kind: "group", by: "function", key: keyOf(answer.peak_function)});
		children.push(
			"; ",
			link(shortOf(app, answer.peak_function), {selection: {kind: "peak"}, item}),
			` held ${formatShare(answer.peak_share)} of it`,
		);
		if (trace.processes.length > 1 && answer.peak_process !== undefined) {
			const process = trace.processes[answer.peak_process];
			children.push(
				", in ",
				link(`${safeText(process?.name)} ${process?.pid ?? ""}`, {
					filters: [{by: "process", key: String(answer.peak_process), hide: false}],
				}),
			);
		}
	}
	children.push(". ", ...drawGrowth(app, link));
	if (resident)
		children.push(
			" ",
			make("b", formatBytes(resident.bytes)),
			trace.processes.length > 1 ? " was resident in the largest process;" : " was resident;",
		);
	children.push(
		" ",
		make("b", about + formatBytes(totals.outstanding_bytes)),
		trace.processes.every(({end}) => end && end !== "unknown") ? " was never freed." : " is still there.",
	);
	fill(byId("sentence"), ...children);
}

/** @param {App} app @param {(text: string, members: Partial<State>) => HTMLElement} link @returns {Child[]} */
function drawGrowth(app, link) {
	const {growth, growth_unknown: unknown} = app.trace.answer ?? {};
	if (unknown) return [make("span", {title: safeText(unknown)}, "Too short a run to say what grows.")];
	if (!growth) return ["Nothing grows steadily."];
	const selection = {kind: /** @type {const} */ ("window"), from: growth.from_ns, to: growth.to_ns, classes: AIFO};
	const grows = growth.function
		? link(shortOf(app, growth.function), {selection, item: {kind: "group", by: "inclusive", key: keyOf(growth.function)}})
		: link(`Process ${growth.pid}`, {selection});
	return [
		grows,
		" grows by ",
		make("b", `${formatBytes(growth.bytes_per_second)}/s`),
		".",
	];
}

/** @param {App} app */
function drawState(app) {
	const {trace} = app,
		state = trace.state ?? [],
		isLoud = state.some((row) => LOUD.includes(row.kind)),
		chip = byId("state");
	// Damage is said below.
	const rows = trace.damage ? state.filter((row) => row.kind !== "damage") : state;
	const lost = state.find((row) => row.kind === "losses");
	const words = [`${formatCount(trace.events)} events`];
	if (lost)
		words[0] += `; ${formatCount(lost.count)} lost${trace.gaps?.length ? ` in ${trace.gaps.length === 1 ? "one gap" : `${trace.gaps.length} gaps`}` : ""}, so sums are lower bounds`;
	else words[0] += ", none lost";
	for (const row of state) if (row.kind !== "losses") words.push(cutText(safeText(row.text), 60));
	if (app.whole.cells.isRounded) words.push("sums above 8 PiB are rounded");
	chip.className = isLoud ? "chip loud" : "chip";
	chip.title = "What the trace lacks";
	fill(chip, make("span.dot"), make("span.chip-text", words.slice(0, isLoud ? 1 + Number(!lost) : 2).join("; ")));
	fill(
		byId("state-list"),
		...(rows.length || trace.damage
			? rows
			: [{text: "Nothing is lost, cut short or contradictory.", command: ""}]
		).map((row) =>
			make("div.state-row", make("div", safeText(row.text)), row.command && make("code", safeText(row.command))),
		),
		trace.damage && make("div.state-row", safeText(trace.damage)),
		...marksOf(trace)
			.filter((mark) => mark.isLoud)
			.slice(0, MARKS_MAX)
			.map((mark) => make("div.state-row", `${mark.sign} at ${formatTime(mark.time)}: ${mark.words}`)),
		...lumpedTexts(app.whole.cells).map((text) => make("div.state-row", text)),
	);
	const damage = byId("damage");
	damage.hidden = !trace.damage;
	damage.textContent = safeText(trace.damage);
}

/** @param {Cells} cells @returns {string[]} what the page does not tell apart */
function lumpedTexts(cells) {
	const texts = [];
	if (cells.lumpedStacks)
		texts.push(
			`${formatCount(cells.lumpedStacks)} light stacks are sent as [smaller stacks]: ${formatBytes(cells.lumpedBytes)} that were made. ` +
				(cells.lumpedFunctions
					? `Their functions are exact, but for ${formatCount(cells.lumpedFunctions)} light ones, which are not told apart; `
					: "Their functions are exact; ") +
				"their paths are not known here.",
		);
	if (cells.plainBytes)
		texts.push(
			`Sizes and lifetimes of ${formatBytes(cells.plainBytes)} that light stacks made are not told apart: [any size], [any lifetime].`,
		);
	return texts;
}

/** @param {App} app @param {(trace: number) => void} open another trace */
export function drawHeader(app, open) {
	const {trace} = app,
		names = trace.traces ?? [];
	fill(
		byId("traces"),
		...(names.length > 1 ? names : []).map((row, i) =>
			make(
				"button.segment",
				{"aria-pressed": i === app.store.state.trace, onclick: () => open(i)},
				name(cutText(safeText(row.name), 40)),
			),
		),
	);
	byId("traces").hidden = names.length < 2;
	document.title = `${cutText(safeText(trace.path), 80)} – xheap`;
	drawAnswer(app);
}

/** @param {App} app what the trace is, and the answer */
export function drawAnswer(app) {
	const {trace} = app;
	const processes = trace.processes.length > 1 ? `, ${trace.processes.length} processes` : "";
	fill(
		byId("program"),
		name(cutText(safeText(trace.command), 200)),
		`${processes}, ${formatTime(trace.duration_ns)}`,
	);
	drawSentence(app);
	drawState(app);
}

/** @param {App} app the chips of the filters */
export function drawFilters(app) {
	const {filters, words} = app.store.state;
	fill(
		byId("filters"),
		...splitFilters(words).map((filter, i, typed) =>
			chip(safeText(filter), "", () => app.store.set({words: typed.toSpliced(i, 1).join(" ")})),
		),
		...filters.map((filter) =>
			chip(filterName(app, filter), filter.hide ? "without " : "", () =>
				app.store.set({filters: app.store.state.filters.filter((other) => other !== filter)}),
			),
		),
	);
}

/** @param {string} words @param {string} before them @param {() => void} remove @returns {HTMLElement} */
function chip(words, before, remove) {
	return make(
		"button.filter",
		{title: cutText(`Remove this filter: ${words}`, TITLE_MAX), onclick: remove},
		before,
		name(cutText(words, 60)),
		make("span", " ×"),
	);
}
