// SPDX-License-Identifier: MIT
// The command that prints the same numbers as the view.
import {AIFI, AIFO, CLASSES, filterCells, findGroup, groupName} from "./cells.js";
import {ANY_LIFE, ANY_SIZE, commandTime, formatTime, lifeLimit} from "./format.js";
import {patternOf, quoteWord, safeText} from "./hostile.js";
import {NEVER_FREED} from "./store.js";

/** The option of `xheap heap` for rows that are no functions. */
const ACTIONS = /** @type {Record<string, string[]>} */ ({
	inclusive: ["-frames", "-inclusive"],
	stack: ["-stacks"],
	image: ["-image"],
	heap: ["-heaps"],
});
const SPLITS = /** @type {Record<string, string>} */ ({
	thread: "thread",
	process: "process",
	size: "size",
	life: "lifetime",
});

/** @param {string} text filters as typed: words, or texts in quotes @returns {string[]} */
export function splitWords(text) {
	return [...text.matchAll(/"([^"]*)"|'([^']*)'|(\S+)/g)].map(
		([, double, single, plain]) => double ?? single ?? plain,
	);
}

/** @param {string} text filters as typed @returns {string[]} one for each option, with its values */
export function splitFilters(text) {
	/** @type {string[]} */
	const filters = [];
	for (const [word] of text.matchAll(/"[^"]*"|'[^']*'|\S+/g))
		if (/^-\D/.test(word) || !filters.length) filters.push(word);
		else filters[filters.length - 1] += ` ${word}`;
	return filters;
}

const UNITS = /** @type {Record<string, number>} */ ({s: 1e9, ms: 1e6, us: 1e3, ns: 1});

/** @param {string} word a time of `-range`, from the start of the trace @returns {number} nanoseconds; NaN if it is another one */
function readTime(word) {
	const [, number, unit = "us"] = /^(\d+(?:\.\d+)?)(s|ms|us|ns)?$/.exec(word) ?? [];
	return Math.round(Number(number) * UNITS[unit]);
}

/**
 * @param {string} text filters as typed
 * @param {number} duration of the trace in nanoseconds
 * @returns {{words: string, selection: When | null}} those for the server; the moment of `-at` or the window of `-range`. Throws an Error with a line of text.
 */
export function readFilters(text, duration) {
	/** @type {When | null} */
	let selection = null;
	const words = splitFilters(text).filter((filter) => {
		const [option, ...values] = splitWords(filter),
			times = values.map(readTime),
			wanted = /** @type {Record<string, number>} */ ({"-at": 1, "-range": 2})[option.toLowerCase()];
		if (!wanted) return true;
		if (times.length !== wanted || times.some(Number.isNaN))
			throw new Error(
				`${option} takes ${wanted > 1 ? "two times" : "a time"} from the start of the trace here, such as 12.5s or 300ms`,
			);
		if (times[0] > duration || times[1] < times[0])
			throw new Error(
				times[0] > duration ? `the trace ends at ${formatTime(duration)}` : "the range ends before it begins",
			);
		selection =
			wanted > 1
				? {kind: "window", from: times[0] - 1, to: Math.min(times[1], duration), classes: AIFI | AIFO}
				: {kind: "moment", at: times[0]};
		return false;
	});
	return {words: words.join(" "), selection};
}

/** @param {App} app @returns {string} the end of the key by which rows are sorted: c for counts */
function counted(app) {
	const {state} = app.store;
	return (state.view !== "flame" ? state.sort === "blocks" : state.measure === "blocks") ? "c" : "";
}

/** @param {Omit<Run, "path">} run @param {boolean} isFiltered @param {boolean} [isDump] which has no keys @returns {{key: string, words: string[]}} what selects the blocks. All of `-at` live at its peak; only there do blocks from before the trace count. */
function selectionWords({choice, model, isPeak, isWhole}, isFiltered, isDump) {
	const {bounds} = model.cells;
	if (choice.kind === "moment")
		return {key: "sp", words: isPeak && !isFiltered && !isDump ? [] : momentWords({choice, model})};
	if (isWhole && choice.classes === (AIFI | AIFO)) return {key: "st", words: []};
	if (isWhole && choice.classes === AIFO && !isDump) return {key: "so", words: []};
	const classes = CLASSES.filter((_, i) => choice.classes & (1 << i)).join("+");
	return {
		key: "st",
		words: ["-window", classes, commandTime(bounds[choice.from] + 1), commandTime(bounds[choice.to])],
	};
}

/** @param {any[]} rows @param {string} key index @param {string} member @returns {string[]} its value, if no other row has the same one */
function uniqueValue(rows, key, member) {
	const value = rows[Number(key)]?.[member];
	return value !== undefined && rows.filter((row) => row[member] === value).length === 1 ? [String(value)] : [];
}

/** @param {Trace} trace @returns {Record<string, (key: string) => string[]>} words of a filter by what it is about; none: the command has no such filter */
function filterWords(trace) {
	const withValue = (/** @type {string} */ option, /** @type {string[]} */ values) =>
		values.length ? [option, ...values] : [];
	return {
		function: (key) => ["-requireFrames", patternOf(key)],
		search: (key) => ["-requireFrames", `*${patternOf(key)}*`],
		image: (key) => ["-requireFrames", `${patternOf(key)}!`],
		thread: (key) => withValue("-threads", uniqueValue(trace.threads, key, "tid")),
		process: (key) => withValue("-pids", uniqueValue(trace.processes, key, "pid")),
		heap: (key) => withValue("-heap", uniqueValue(trace.heaps, key, "handle")),
		size: (key) =>
			Number(key) === ANY_SIZE
				? []
				: [
						"-size",
						String(Number(key) ? 2 ** (Number(key) - 1) : 0),
						String(Number(key) ? 2 ** Number(key) : 1),
					],
		life: (key) =>
			key === NEVER_FREED || Number(key) === ANY_LIFE
				? []
				: [
						"-closed",
						"-lifetime",
						commandTime(lifeLimit(Number(key))),
						commandTime(lifeLimit(Number(key) + 1)),
					],
	};
}

/** @param {Pick<App, "whole">} app @param {Filter} filter @returns {string} */
export function filterName({whole}, {by, key}) {
	if (by === "search") return `“${safeText(key)}”`;
	const group = findGroup(whole, by, key);
	return group < 0 ? safeText(key) : groupName(whole, by, group).name;
}

/**
 * @param {App} app
 * @param {Filter[]} filters
 * @param {string[]} typed words of filters: an option that they have is not given twice
 * @returns {{words: string[], lacks: string[]}} options for filters, and the filters that have none
 */
export function optionsOf(app, filters, typed) {
	const words = [],
		lacks = [],
		options = new Set(typed.map((word) => word.toLowerCase()));
	for (const filter of filters) {
		const own = filterWords(app.trace)[filter.by]?.(filter.key) ?? [],
			option = own.find((word) => word !== "-closed")?.toLowerCase();
		if (filter.hide || !option || options.has(option))
			lacks.push((filter.hide ? "without " : "") + filterName(app, filter));
		else {
			words.push(...own);
			options.add(option);
		}
	}
	return {words, lacks};
}

/** @param {Pick<Picture, "choice" | "model">} picture @returns {string[]} the moment, or the end of the window */
function momentWords({choice, model}) {
	const bound = choice.kind === "moment" ? choice.at : choice.to;
	return ["-at", commandTime(Math.max(0, model.cells.bounds[bound]))];
}

/** @param {App} app @returns {Filter[]} one that has just the blocks of the selected frame or row; without one, none */
function itemFilters({store, picture, panel}) {
	const {model, selected, itemMask} = picture,
		filter = store.state.item && panel.filterOf(store.state.item),
		mask = filter && filterCells(model, [filter]);
	if (!mask || model.cells.lumpedStacks) return [];
	return selected.hits.every((hit, i) => !hit || mask[i] === itemMask?.[i]) ? [filter] : [];
}

/** @param {App} app @returns {{words: string[], lacks: string[], shape: string[]}} the command; what it cannot be told, so that its numbers are others; what else it has not */
export function commandOf(app) {
	const {state} = app.store,
		path = String(app.trace.path ?? ""),
		isDump = state.view === "blocks",
		isMap = state.view === "map",
		{choice} = app.picture,
		filters = isDump ? [...state.filters, ...itemFilters(app)] : state.filters,
		// What began in the window and is never freed is outstanding of it.
		isNever = (/** @type {Filter} */ {by, key, hide}) =>
			by === "life" && key === NEVER_FREED && !hide && choice.kind === "window" && !isDump && !isMap,
		// The file grows: its peak and end will be others.
		grows = (app.trace.live || app.source.held) && {isPeak: false, isWhole: false},
		{key, words} = selectionWords({...app.picture, ...grows, isWithout: false}, filters.length > 0, isDump),
		typed = splitWords(state.words),
		{words: options, lacks} = optionsOf(
			app,
			filters.filter((filter) => !isNever(filter)),
			typed,
		);
	// The command takes one window: the one that was chosen by hand.
	const window = words[0] === "-window" && !isMap ? typed.findIndex((word) => word.toLowerCase() === "-window") : -1;
	if (window >= 0) {
		typed.splice(window, 4);
		lacks.push("the window of the typed filter");
	}
	if (app.trace.fleet) return {words: app.trace.fleet, lacks: [], shape: ["times"]};
	if (state.view === "compare") return comparedCommand(app);
	if (isDump) {
		if (state.item && filters.length === state.filters.length) lacks.push("what is selected");
		return {
			words: ["xheap", "dump", path, "-allocations", ...words, ...typed, ...options],
			lacks,
			shape: ["the order"],
		};
	}
	if (isMap)
		return {
			words: ["xheap", "heap", path, "-map", ...momentWords(app.picture), ...typed, ...options],
			lacks,
			shape: [],
		};
	const isSizes = state.view === "sizes",
		rows = isSizes ? "size" : state.rows,
		action = state.view === "flame" ? ["-tree"] : (ACTIONS[rows] ?? ["-frames"]);
	const sort =
		state.view === "flame" && state.measure === "temporaries"
			? "stt"
			: (filters.some(isNever) ? "so" : key) + counted(app);
	const command = ["xheap", "heap", path, ...action, sort, ...words];
	if (state.view !== "flame" && SPLITS[rows]) command.push("-by", SPLITS[rows]);
	if (state.view === "flame" && (state.by === "process" || state.by === "thread")) command.push("-by", state.by);
	if (state.view === "flame" && !state.isFolded) command.push("-noDefaultCull");
	command.push(...typed, ...options);
	const shape = [];
	if (isSizes) shape.push("lifetimes beside the sizes");
	if (state.view === "flame" && state.measure === "peak") lacks.push("the restriction to the peak");
	if (state.view === "flame" && state.isInverted) shape.push("the inversion");
	if (state.view === "flame" && state.focus) shape.push("the focus");
	return {words: command, lacks, shape};
}

/** @param {Run} run @param {boolean} isFiltered how `xheap diff` names it, and its numbers */
function sideWords(run, isFiltered) {
	const {key, words} = selectionWords(run, isFiltered),
		[option, first, from, to] = words,
		{choice} = run;
	return {
		suffix: option === "-at" ? `@=${first}` : option ? `@${from}..${to}` : "",
		key: choice.kind === "window" && choice.classes === AIFO ? "so" : key,
		isLess: choice.kind === "window" && choice.classes !== AIFO && choice.classes !== (AIFI | AIFO),
	};
}

/** @param {App} app @returns {ReturnType<typeof commandOf>} */
function comparedCommand(app) {
	const {state} = app.store,
		sides = /** @type {[Side, Side] | null} */ (app.compare.sides()),
		typed = splitWords(state.words),
		{words, lacks} = optionsOf(app, state.filters, typed),
		other = app.otherOf();
	if (!sides || !other || !app.other) return {words: [], lacks, shape: []};
	const said = sides.map(({runs}) => runs.map((run) => sideWords(run, state.filters.length > 0)));
	if (said[0][0].key !== said[1][0].key) lacks.push("a moment beside a window");
	if (said.some(([side]) => side.isLess)) lacks.push("these classes");
	const [a, b] = sides.map(({runs}, i) => runs.map(({path}, run) => path + said[i][run].suffix)),
		command = [
			"xheap",
			"diff",
			...a,
			...(a.length + b.length > 2 ? ["--"] : []),
			...b,
			...(ACTIONS[state.rows] ?? ["-frames"]),
			said[1][0].key + counted(app),
		];
	if (SPLITS[state.rows]) command.push("-by", SPLITS[state.rows]);
	return {words: [...command, ...typed, ...words], lacks, shape: []};
}

/** @param {string[]} words @returns {string} for a shell */
export function commandText(words) {
	return words.map(quoteWord).join(" ");
}
