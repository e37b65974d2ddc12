// SPDX-License-Identifier: MIT
// Makes the parts of the page and connects them: a change of the state becomes one picture, which each view draws.
import {AIFO, makeModel, keepColors, pathKey, processPeaks} from "./cells.js";
import {decodeCells} from "./decode.js";
import {byId, capital, fill, make, onClick} from "./elements.js";
import {formatBytes, formatCount, formatShare, formatTime} from "./format.js";
import {cutText, safeText} from "./hostile.js";
import {readPalette} from "./palette.js";
import {describe, hasBoundsOf, hasTimes, makePicture, searchSum, selectionMark} from "./picture.js";
import {divideData, keepToken, openSource, Replaced, Unreachable} from "./request.js";
import {addressOfTrace, MAP_COLORS, readAddress, Store, VIEW_NAMES, WHOLE_RUN} from "./store.js";
import {commandOf, commandText, readFilters, splitWords} from "./command.js";
import {drawAnswer, drawFilters, drawHeader} from "./answer.js";
import {Blocks} from "./blocks.js";
import {matchPrograms} from "./compare.js";
import {Compare} from "./compare_view.js";
import {Flame} from "./flame.js";
import {fillKeys, listenToKeys, toggleInverted} from "./keys.js";
import {GROUPING_WORDS, Legend} from "./legend.js";
import {HOLD_FIRST, Live} from "./live.js";
import {PageMap} from "./map.js";
import {Panel} from "./panel.js";
import {Sizes} from "./sizes.js";
import {Table} from "./table.js";
import {Timeline} from "./timeline.js";
import {WindowBar} from "./window_bar.js";

/** Intervals of the timeline; more on wide screens. */
const INTERVALS = 256,
	INTERVALS_WIDE = 512,
	WIDE = 1500;
/** How long a zoom waits for the next step before it asks for cells. Milliseconds. */
const ZOOM_PAUSE_MS = 120;
/** A process with so much of the peak is divided by functions at first. */
const MOST_OF_ALL = 0.9;
const THEME = "xheap-theme";
const MEASURES = /** @type {Record<Measure, string>} */ ({
	bytes: "bytes",
	blocks: "blocks",
	peak: "peak",
	temporaries: "temporary",
});

class Page {
	/** @param {Source} source @param {Store} store @param {Trace} trace @param {Model} whole */
	constructor(source, store, trace, whole) {
		this.source = source;
		this.store = store;
		this.trace = trace;
		/** The run without words of a filter: it decides about colours. */
		this.base = whole;
		this.whole = this.shown = whole;
		/** Times that cells have as bounds because they were asked for. @type {WeakMap<Model, number[]>} */
		this.boundsAsked = new WeakMap();
		/** What is compared with. @type {App["other"]} */
		this.other = null;
		this.otherKey = "";
		/** Cells of the stacks below a focus. @type {{key: string, focus: string, model: Model | null}} */
		this.finer = {key: "", focus: "", model: null};
		/** Answers by name. @type {Record<string, {key: string, answer?: any, error?: string}>} */
		this.found = {};
		this.cursor = -1;
		/** @type {Ink | null} */
		this.ink = null;
		this.frame = 0;
		/** Frames stay in their order while pictures of a recording follow each other. */
		this.isGoingOn = false;
		this.lacking = HOLD_FIRST;
		this.isTimelineOnly = true;
		this.palette = this.readPalette();
		this.picture = makePicture(this);
		/** @type {Picture} */
		this.detail = this.picture;
		this.timeline = new Timeline(this);
		this.legend = new Legend(this);
		this.bar = new WindowBar(this);
		this.flame = new Flame(this);
		this.table = new Table(this);
		this.blocks = new Blocks(this);
		this.sizes = new Sizes(this);
		this.map = new PageMap(this);
		this.compare = new Compare(this);
		this.panel = new Panel(this);
		this.makeControls();
		listenToKeys(this);
		fillKeys();
		new ResizeObserver(() => this.redraw()).observe(byId("pane"));
		matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.setTheme());
	}

	readPalette() {
		const style = getComputedStyle(document.documentElement);
		return readPalette((name) => style.getPropertyValue(`--${name}`), isDark());
	}

	/** @returns {boolean} */
	isResidentOff() {
		return Boolean(this.timeline?.isResidentOff);
	}

	makeControls() {
		const {store} = this,
			set = (/** @type {Partial<State>} */ members) => () => store.set(members);
		fill(
			byId("tabs"),
			...VIEW_NAMES.map((view, i) => {
				const about = {id: `view-${view}`, role: "tab", "aria-controls": view, onclick: set({view})};
				return make("button.segment", about, capital(view), " ", make("kbd", `${i + 1}`));
			}),
		);
		fill(
			byId("measures"),
			.../** @type {Measure[]} */ (Object.keys(MEASURES)).map((measure) =>
				make("button.segment", {"data-measure": measure, onclick: set({measure})}, MEASURES[measure]),
			),
		);
		fill(
			byId("map-colors"),
			...MAP_COLORS.map((map) => make("button.segment", {id: `map-${map}`, onclick: set({map})}, capital(map))),
		);
		onClick("inverted", () => toggleInverted(this));
		onClick("merged", () => store.set({isMerged: !store.state.isMerged, focus: "", opened: [], item: null}));
		onClick("unfolded", () => store.set({isFolded: !store.state.isFolded}));
		const rows = inputOf("rows");
		fill(
			rows,
			...Object.entries({...GROUPING_WORDS, inclusive: "function, with callees"}).map(([value, words]) =>
				make("option", {value}, words),
			),
		);
		rows.addEventListener("change", () => store.set({rows: /** @type {any} */ (rows.value), expanded: ""}));
		const search = inputOf("search");
		const isFilter = () => search.value.trimStart().startsWith("-");
		search.addEventListener("input", () => store.set({search: isFilter() ? "" : search.value}, "replace"));
		search.addEventListener("keydown", (event) => {
			const key = search.value.trim();
			if (event.key !== "Enter" || !key) return;
			if (isFilter()) return this.takeFilters(search, key);
			search.value = "";
			search.blur();
			store.set({search: "", filters: [...store.state.filters, {by: "search", key, hide: false}]});
		});
		onClick("copy-command", () => this.copy(commandText(commandOf(this).words), "Command copied"));
		onClick("copy-address", () => this.copy(location.href, "Address copied"));
		onClick("theme", () => this.toggleTheme());
		for (const id of ["keys", "state"]) onClick(id, () => this.open(id));
		for (const dialog of document.querySelectorAll("dialog")) {
			dialog.addEventListener("click", (event) => event.target === dialog && dialog.close());
			dialog.querySelector(".dialog-close")?.addEventListener("click", () => dialog.close());
		}
		byId("tabs").addEventListener("keydown", (event) => {
			const step = {ArrowLeft: VIEW_NAMES.length - 1, ArrowRight: 1}[event.key];
			if (!step) return;
			store.set({view: VIEW_NAMES[(VIEW_NAMES.indexOf(store.state.view) + step) % VIEW_NAMES.length]});
			byId(`view-${store.state.view}`).focus();
			event.preventDefault();
		});
	}

	/** @param {HTMLInputElement} search @param {string} text filters that were typed there */
	takeFilters(search, text) {
		const {store} = this;
		try {
			const {words, selection} = readFilters(text, this.trace.duration_ns);
			search.value = "";
			search.blur();
			store.set({search: "", words: `${store.state.words} ${words}`.trim(), item: null, ...(selection && {selection})});
		} catch (error) {
			this.fail(error);
		}
	}

	/** @param {string} text @param {string} done what to say then */
	async copy(text, done) {
		try {
			await navigator.clipboard.writeText(text);
			this.say(done);
			this.warn(done);
		} catch {
			this.warn(`Copying is not allowed here: ${cutText(text, 200)}`);
		}
	}

	/** @param {string} id of a dialog */
	open(id) {
		/** @type {HTMLDialogElement} */ (byId(`${id}-dialog`)).showModal();
	}

	toggleTheme() {
		const theme = isDark() ? "light" : "dark";
		try {
			localStorage.setItem(THEME, theme);
		} catch {
			// A page from a file may have no storage: the choice lasts as long as the page.
		}
		document.documentElement.dataset.theme = theme;
		this.setTheme();
	}

	setTheme() {
		this.palette = this.readPalette();
		this.redraw();
	}

	/** @param {string} text */
	say(text) {
		byId("live").textContent = text;
	}

	/** @param {string} text a line above the footer; empty: none */
	warn(text) {
		const box = byId("notice");
		box.textContent = text;
		box.hidden = !text;
		clearTimeout(this.noticeTimer);
		if (text) this.noticeTimer = setTimeout(() => (box.hidden = true), 8000);
	}

	/** @param {Ink | null} ink */
	hover(ink) {
		if (this.ink?.key === ink?.key) return;
		this.ink = ink;
		this.redrawTimeline();
	}

	/** Draws all before the next frame of the screen. */
	redraw() {
		this.isTimelineOnly = false;
		this.redrawTimeline();
	}

	redrawTimeline() {
		this.frame ||= requestAnimationFrame(() => this.draw());
	}

	draw() {
		this.frame = 0;
		const begin = performance.now();
		if (!this.isTimelineOnly) this.drawAll();
		this.isTimelineOnly = true;
		this.timeline.render();
		this.legend.render();
		this.drawMs = performance.now() - begin;
		if (!this.store.isDragging) this.drawCost();
	}

	drawAll() {
		const {view} = this.store.state,
			{detail} = this;
		this.detail = this.picture = makePicture(this);
		this.bar.render();
		for (const controls of /** @type {NodeListOf<HTMLElement>} */ (document.querySelectorAll("[data-views]")))
			controls.hidden = !controls.dataset.views?.includes(view);
		for (const other of VIEW_NAMES) {
			const tab = byId(`view-${other}`),
				isOn = view === other;
			byId(other).hidden = !isOn;
			tab.setAttribute("aria-selected", String(isOn));
			tab.tabIndex = isOn ? 0 : -1;
		}
		this.askForOther();
		if (view === "flame") this.drawFlame(detail);
		else this[view].render();
		this.panel.render();
		drawFilters(this);
		this.drawControls();
		this.drawFooter();
		if (!this.store.isDragging) this.say(describe(this.picture));
	}

	/** @returns {Other | null} what the selection is compared with: what was kept, else the same of another trace */
	otherOf() {
		const {state} = this.store,
			{other, selection, trace} = state,
			{runs = 1} = this.trace,
			isB = trace < runs;
		return other || !(this.trace.traces?.length > 1) ? other : {trace: isB ? runs : 0, isB, selection};
	}

	/** @param {Other} other @returns {Other[]} what is compared with; of several runs of each side also all other runs */
	runsOf(other) {
		const {trace, selection} = this.store.state,
			{runs, traces} = this.trace,
			isOwn = (/** @type {number} */ run) => run < runs === trace < runs;
		if (!runs || isOwn(other.trace)) return [other];
		return [other].concat(
			[...traces.keys()]
				.filter((run) => run !== trace && run !== other.trace)
				.map((run) => ({
					trace: run,
					isB: isOwn(run) !== other.isB,
					selection: isOwn(run) ? selection : other.selection,
				})),
		);
	}

	/** Asks for the cells to compare with. They have the times of their selection as bounds. */
	async askForOther() {
		const other = this.otherOf(),
			{state} = this.store;
		if (!other || state.view !== "compare" || (this.store.isDragging && this.other)) return;
		const bounds = boundsOf(other.selection),
			isOwn = other.trace === state.trace,
			known =
				isOwn &&
				[this.shown, this.whole].find(
					(model) =>
						this.trace.live ||
						(hasTimes(model, bounds) && (other.selection.kind !== "peak" || model.cells.peak >= 0)),
				),
			wanted = this.runsOf(other),
			key = JSON.stringify([wanted.map((run) => [run.trace, boundsOf(run.selection)]), this.filter]);
		if (known) {
			this.otherKey = key;
			this.other = {model: known, trace: this.trace, said: "", runs: [{model: known, trace: this.trace}]};
			return;
		}
		if (this.otherKey === key || (wanted.length > 1 && this.store.isDragging)) return;
		this.otherKey = key;
		this.other = null;
		try {
			const runs = [];
			let said = "";
			for (const run of wanted) {
				const trace = isOwn ? this.trace : await this.source.json("trace", run.trace),
					inTrace = boundsOf(run.selection).filter((time) => time <= trace.duration_ns),
					query = {n: intervals(), bounds: inTrace, filter: this.filter, lane: "other"},
					cells = readCells(await this.source.cells(run.trace, query), trace);
				said ||= isOwn ? "" : matchPrograms(cells, trace, this.whole);
				if (key !== this.otherKey) return;
				runs.push({model: makeModel(cells, trace), trace});
			}
			this.other = {...runs[0], said, runs};
			this.redraw();
		} catch (error) {
			this.fail(error);
		}
	}

	/** Asks the server once; while something is dragged, not at all. @param {string} name @param {Record<string, string>} query @returns {{answer?: any, error?: string}} what it has said to the last query */
	find(name, query) {
		if (this.trace.live) return {error: this.lacking};
		const key = JSON.stringify([query, this.source.held]);
		if (this.found[name]?.key !== key && !this.store.isDragging) {
			/** @type {{key: string, answer?: any, error?: string}} */
			const found = (this.found[name] = {key});
			this.source
				.json(name, this.store.state.trace, query)
				.then((answer) => (found.answer = answer), (error) => (found.error = error.message))
				.then(() => found === this.found[name] && this.redraw());
		}
		return this.found[name] ?? {};
	}

	/** A focus shows finer cells, if stacks are lumped, as soon as the server has sent them. @param {Picture} before */
	drawFlame(before) {
		const {store, picture, finer} = this,
			{focus, isInverted, isMerged} = store.state,
			canBeFiner = this.canAsk() && focus && !isInverted && !isMerged && picture.model.cells.lumpedStacks > 0;
		if (canBeFiner && finer.model && finer.focus === focus && hasBoundsOf(finer.model, picture.model))
			this.detail = makePicture({...this, whole: finer.model, shown: finer.model, picture: before});
		this.flame.render();
		const node = this.flame.layout.focusNode;
		if (canBeFiner && node >= 0 && this.detail === picture && !store.isDragging) this.askForFiner(node);
	}

	/** @param {number} node that is focused */
	async askForFiner(node) {
		const {model} = this.picture,
			{bounds, whole} = model.cells,
			{trace, focus} = this.store.state;
		const query = {
			...(!whole && {from: bounds[0], to: bounds[model.last]}),
			n: intervals(),
			bounds: this.boundsAsked.get(model),
			filter: this.filter,
			node: pathKey(model, node),
		};
		const key = JSON.stringify(query);
		if (this.finer.key === key) return;
		/** @type {{key: string, focus: string, model: Model | null}} */
		const finer = {key, focus, model: null};
		this.finer = finer;
		try {
			finer.model = this.modelOf(await this.source.cells(trace, query), query.bounds);
			if (finer === this.finer) this.redraw();
		} catch (error) {
			this.fail(error);
		}
	}

	/** @param {ArrayBuffer} buffer cells @param {number[]} [bounds] that they were asked for @returns {Model} */
	modelOf(buffer, bounds = []) {
		const model = makeModel(readCells(buffer, this.trace), this.trace, this.base);
		this.boundsAsked.set(model, bounds);
		return model;
	}

	drawControls() {
		const {state} = this.store;
		for (const button of byId("measures").querySelectorAll("button")) {
			const {measure} = button.dataset;
			button.setAttribute("aria-pressed", String(measure === state.measure));
			button.disabled = measure === "peak" && this.picture.model.cells.peak < 0;
		}
		const pressed = {
			inverted: state.isInverted,
			merged: state.isMerged,
			unfolded: !state.isFolded,
			...Object.fromEntries(MAP_COLORS.map((by) => [`map-${by}`, state.map === by])),
		};
		for (const [id, isOn] of Object.entries(pressed)) byId(id).setAttribute("aria-pressed", String(isOn));
		inputOf("rows").value = state.rows;
		const search = inputOf("search");
		if (document.activeElement !== search) search.value = state.search;
		const sum = this.picture.hitPaths ? searchSum(this.picture) : null,
			lower = this.picture.model.cells.lumpedStacks ? "≥\u2009" : "";
		byId("search-sum").textContent = sum
			? `${lower || selectionMark(this.picture)}${formatBytes(sum.value)}, ${formatShare(sum.share)}`
			: "";
	}

	drawFooter() {
		const {words, lacks, shape} = commandOf(this),
			text = lacks.length ? "" : cutText(safeText(commandText(words)), 400);
		byId("command").textContent = byId("command").title = text;
		byId("copy-command").hidden = !text;
		byId("lacks").textContent = lacks.length
			? `no command has these numbers: none can be told ${lacks.join(", ")}`
			: shape.map((word, i) => (i ? word : `but for ${word}`)).join(", ");
	}

	drawCost() {
		const {cells} = this.picture.model;
		byId("cost").textContent =
			`${formatCount(cells.count)} cells in ${this.picture.passMs.toFixed(1)} ms, drawn in ${(this.drawMs ?? 0).toFixed(1)} ms`;
	}

	/** @param {State} before */
	changed(before) {
		const {state} = this.store;
		this.isGoingOn = false;
		if (state.trace !== before.trace) {
			location.reload();
			return;
		}
		if (state.words !== before.words) this.askForWords(before.words);
		else if (state.selection !== before.selection && !this.store.isDragging && this.lacksBounds())
			this.askForWords();
		else if (state.range !== before.range) this.askForRange();
		this.redraw();
	}

	/** A later picture of a recording, or the whole trace behind it. @param {Trace} trace @param {ArrayBuffer} cells */
	goOn(trace, cells) {
		const model = makeModel(readCells(cells, trace), trace);
		keepColors(model, this.base, this.store.state.by);
		this.trace = trace;
		this.base = this.whole = this.shown = model;
		this.isGoingOn = true;
		this.otherKey = this.finer.key = "";
		drawAnswer(this);
		this.redraw();
		this.askForMissing();
	}

	/** The trace takes the place of pictures. @param {() => boolean} [isWanted] still, when it is there @returns {Promise<boolean>} whether it is shown */
	async reload(isWanted = () => true) {
		try {
			const whole = await readWhole(this.source, this.store.state.trace);
			if (isWanted()) this.goOn(...whole);
			return isWanted();
		} catch (error) {
			this.fail(error);
			return false;
		}
	}

	/** Asks for what the address wants beyond the whole run. */
	askForMissing() {
		const {words, range} = this.store.state;
		if (words || this.lacksBounds()) this.askForWords(words ? "" : undefined);
		else if (range) this.askForRange();
	}

	/** @returns {boolean} whether a server answers more than the whole run */
	canAsk() {
		return this.source.isServer && !this.trace.live;
	}

	/** @returns {string | undefined} words of a filter, as a request has them */
	get filter() {
		return splitWords(this.store.state.words).join("\n") || undefined;
	}

	/** @returns {boolean} whether no cells have the times of the selection as bounds, and a server can make some */
	lacksBounds() {
		const times = boundsOf(this.store.state.selection);
		return this.canAsk() && ![this.shown, this.whole].some((model) => hasTimes(model, times));
	}

	/**
	 * Asks for the cells that pass the words of a filter, with the times of the selection as bounds. Until they are
	 * there, those of before are drawn.
	 * @param {string} [before] the words to go back to if the server refuses the new ones; without: they stay
	 */
	async askForWords(before) {
		const {state} = this.store,
			{words} = state;
		try {
			const bounds = boundsOf(state.selection),
				query = {n: intervals(), bounds, filter: this.filter};
			const whole =
				words || !hasTimes(this.base, bounds)
					? this.modelOf(await this.source.cells(state.trace, query), bounds)
					: this.base;
			if (words !== this.store.state.words) return;
			this.whole = this.shown = whole;
			if (state.range) this.askForRange();
			this.redraw();
		} catch (error) {
			this.fail(error);
			if (before === undefined || error instanceof Replaced || words !== this.store.state.words) return;
			const kept = before === words ? "" : before,
				search = inputOf("search");
			this.store.set({words: kept}, "replace");
			// What was typed can be mended.
			search.value = words.slice(kept.length).trim();
			search.focus();
		}
	}

	/** Asks for finer cells of the range that the timeline shows. Until they are there, those of before are drawn. */
	askForRange() {
		clearTimeout(this.rangeTimer);
		const {range, selection} = this.store.state;
		if (!range) {
			this.shown = this.whole;
			return;
		}
		if (!this.canAsk()) return;
		const bounds = boundsOf(selection).filter((time) => time > range.from && time < range.to);
		this.rangeTimer = setTimeout(
			() => this.loadRange({from: range.from, to: range.to, n: intervals(), bounds, filter: this.filter}),
			ZOOM_PAUSE_MS,
		);
	}

	/** @param {CellsQuery} query */
	async loadRange(query) {
		try {
			const buffer = await this.source.cells(this.store.state.trace, query);
			const {range} = this.store.state;
			if (range?.from !== query.from || range?.to !== query.to || query.filter !== this.filter) return;
			this.shown = this.modelOf(buffer, query.bounds);
			this.redraw();
		} catch (error) {
			this.fail(error);
		}
	}

	/** @param {unknown} error */
	fail(error) {
		if (error instanceof Replaced) return;
		if (error instanceof Unreachable) showEnd(this.trace);
		else this.warn(safeText(/** @type {Error} */ (error).message));
	}
}

function isDark() {
	const {theme} = document.documentElement.dataset;
	return theme ? theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
}

/** @param {When} selection @returns {number[]} its times, which have to be bounds */
function boundsOf(selection) {
	const times =
		selection.kind === "peak" ? [] : selection.kind === "moment" ? [selection.at] : [selection.from, selection.to];
	return times.filter(Number.isFinite);
}

/** @param {string} id @returns {HTMLInputElement} */
function inputOf(id) {
	return /** @type {any} */ (byId(id));
}

function intervals() {
	return window.innerWidth > WIDE ? INTERVALS_WIDE : INTERVALS;
}

/** @param {Trace} trace one of those that the server had */
function showEnd({path, traces, runs}) {
	const chip = byId("ended"),
		all = traces.map((trace) => trace.name),
		names = traces.length > 1 ? (runs ? all.toSpliced(runs, 0, "--") : all).join(" ") : path;
	chip.textContent = `the server has ended; run xheap view ${safeText(names)} again`;
	chip.hidden = false;
}

/** @param {ArrayBuffer} buffer @param {Trace} trace @returns {Cells} */
function readCells(buffer, trace) {
	return decodeCells(buffer, trace.threads.length, trace.heaps.length);
}

/** @param {Source} source @param {number} number of a trace @returns {Promise<[Trace, ArrayBuffer]>} and its cells; those of a recording come with it */
async function readWhole(source, number) {
	const [trace, cells] = await Promise.all([source.json("trace", number), source.cells(number, {n: intervals()})]);
	if (!trace.live) return [trace, cells];
	const [picture, {trace: now}] = divideData(await /** @type {any} */ (source).live(0));
	return [now, picture.cells];
}

/** @param {Source} source */
async function load(source) {
	const [trace, bytes] = await readWhole(source, readAddress(location.hash).trace);
	if (trace.schema !== 1) throw new Error("this page is older than its server");
	/** @type {Page | null} */
	let page = null;
	const store = new Store((before) => page?.changed(before));
	const whole = makeModel(readCells(bytes, trace), trace),
		shares = processPeaks(whole),
		most = MOST_OF_ALL * shares.reduce((sum, bytes) => sum + bytes, 0);
	if (shares.every((bytes) => bytes < most) && !new URLSearchParams(location.hash.slice(1)).has("by"))
		store.set({by: "process"}, "replace");
	if (source.isServer && (trace.runs || trace.traces?.length === 2) && !/[#&](view|trace)=/.test(location.hash)) {
		const other = await source.json("trace", trace.runs ?? 1),
			// Equal peaks may be of a start that is the same: the ends say more.
			isSame = other.totals?.peak_bytes === trace.totals?.peak_bytes,
			selection = isSame ? {...WHOLE_RUN, classes: AIFO} : store.state.selection;
		store.set({view: "compare", selection}, "replace");
	}
	page = new Page(source, store, trace, whole);
	drawHeader(page, (number) => {
		location.hash = addressOfTrace(number, store.state.other);
		location.reload();
	});
	document.body.classList.remove("waiting");
	page.redraw();
	page.askForMissing();
	if (trace.live) new Live(page);
}

/** What the server reads: once there is a picture, beside it. @param {number} share @param {number} secondsLeft */
function showProgress(share, secondsLeft) {
	byId("progress").style.width = `${Math.min(1, share) * 100}%`;
	byId(document.body.classList.contains("waiting") ? "sentence" : "cost").textContent = share
		? `Reading the trace: ${formatShare(share)}${secondsLeft ? `, about ${formatTime(secondsLeft * 1e9)} left` : ""}`
		: "Reading the trace …";
}

/** @param {unknown} error */
function showError(error) {
	const message = error instanceof Error ? error.message : String(error);
	fill(byId("sentence"), make("span", {role: "alert"}, cutText(safeText(message), 300)));
	document.body.classList.add("failed");
	byId("token-form").hidden = !/token/i.test(message);
}

async function start() {
	try {
		document.documentElement.dataset.theme = localStorage.getItem(THEME) ?? "";
	} catch {
		// No storage: the system's choice.
	}
	byId("token-form").addEventListener("submit", (event) => {
		event.preventDefault();
		keepToken(inputOf("token").value);
		location.reload();
	});
	try {
		await load(await openSource(showProgress));
	} catch (error) {
		showError(error);
	}
}

start();
