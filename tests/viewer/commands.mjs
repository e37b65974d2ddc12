#!/usr/bin/env node
// SPDX-License-Identifier: MIT
// xheap accepts each command that the page prints: each view, kind of rows, selection and filter, over a trace of processes.
import assert from "node:assert/strict";
import {spawnSync} from "node:child_process";
import path from "node:path";
import test from "node:test";
import {commandOf, commandText} from "../../viewer/command.js";
import {SOURCE} from "./packages.mjs";

const XHEAP = process.env.XHEAP ?? path.join(SOURCE, "build/xheap"),
	TRACE = path.join(SOURCE, "tests/golden/traces/processes.xht");
const bounds = Float64Array.from({length: 257}, (_, i) => (i ? i * 96000 : -1));
const first = {
	view: "flame",
	by: "function",
	selection: {kind: "peak"},
	filters: [],
	words: "",
	measure: "bytes",
	isInverted: false,
	isFolded: true,
	isMerged: false,
	focus: "",
	rows: "function",
	sort: "bytes",
};
const CHOICES = {
	peak: [{kind: "moment", at: 100}, {isPeak: true}],
	moment: [{kind: "moment", at: 50}, {}],
	first: [{kind: "moment", at: 0}, {}],
	window: [{kind: "window", from: 10, to: 200, classes: 2}, {}],
	classes: [{kind: "window", from: 10, to: 200, classes: 6}, {}],
	whole: [{kind: "window", from: 0, to: 256, classes: 3}, {isWhole: true}],
	never: [{kind: "window", from: 0, to: 256, classes: 2}, {isWhole: true}],
};
const STATES = [
	{},
	{measure: "blocks"},
	{view: "sizes", rows: "stack"},
	{measure: "temporaries"},
	{isFolded: false},
	{by: "process"},
	{by: "thread"},
	{words: "-size 64 128"},
	{words: "-requireFrames \"main\" 'malloc'"},
	{words: "-size 64 128 -WINDOW AIFI 0 1s -closed"},
	...["function", "inclusive", "stack", "image", "thread", "process", "heap", "size", "life"].flatMap((rows) => [
		{view: "table", rows},
		{view: "table", rows, sort: "blocks"},
	]),
	...[
		["function", "words!main"],
		["function", "words!odd \u0000'\ufffd name(int)"],
		["search", 'mal"loc'],
		["image", "libc.so.6"],
		["thread", "0"],
		["process", "0"],
		["heap", "0"],
		["size", "0"],
		["size", "12"],
		["life", "0"],
		["life", "5"],
	].map(([by, key]) => ({filters: [{by, key, hide: false}]})),
];

function wordsOf(state, [choice, picture]) {
	const trace = {
		path: TRACE,
		threads: [{tid: 5645}],
		processes: [{pid: 5645}],
		heaps: [{handle: "0x7f7559702000"}, {handle: "0x1"}, {handle: "0x1"}],
	};
	return commandOf({
		trace,
		source: {},
		store: {state: {...first, ...state}},
		picture: {isPeak: false, isWhole: false, ...picture, choice, model: {cells: {bounds}}},
	}).words;
}

test("xheap takes each command", () => {
	const choices = Object.values(CHOICES);
	// Each selection with the first state, each state with one of the selections: they are words of their own.
	const asked = [
		...choices.map((choice) => [STATES[0], choice]),
		...STATES.map((state, i) => [state, choices[i % choices.length]]),
		...choices.flatMap((choice) => [{view: "blocks"}, {view: "map"}].map((state) => [state, choice])),
	].map(([state, choice]) => ({state, text: commandText(wordsOf(state, choice).slice(1))}));
	const script = asked.map(({text}) => `"$0" ${text} 2>&1 >/dev/null; echo "status $?"`).join("\n");
	const done = spawnSync("bash", ["--norc", "-c", script, XHEAP], {encoding: "utf8"});
	const answers = [...done.stdout.matchAll(/([^]*?)status (\d+)\n/g)];
	assert.equal(answers.length, asked.length);
	asked.forEach(({state, text}, i) => {
		const [, said, status] = answers[i];
		assert.ok(status === "0" || (status === "1" && state.filters), `xheap ${text}: ${status} ${said}`);
	});
});

test("a dump has no key of a report: its options say all that is selected", () => {
	const optionsOf = (name, state) =>
		wordsOf({view: "blocks", ...state}, CHOICES[name])
			.slice(4)
			.join(" ");
	assert.equal(optionsOf("peak"), "-at 9600us");
	assert.equal(optionsOf("never"), "-window AIFO 0 24576us");
	assert.equal(optionsOf("never", {words: "-window AIFI 0 1s -closed"}), "-window AIFO 0 24576us -closed");
	assert.equal(optionsOf("whole"), "");
});

test("a map is of the moment, or of the end of the window", () => {
	const optionsOf = (name) => wordsOf({view: "map", words: "-window AIFI 0 1s"}, CHOICES[name]).slice(3).join(" ");
	assert.equal(optionsOf("peak"), "-map -at 9600us -window AIFI 0 1s");
	assert.equal(optionsOf("first"), "-map -at 0 -window AIFI 0 1s");
	assert.equal(optionsOf("window"), "-map -at 19200us -window AIFI 0 1s");
});

test("a window is given once: the one that was chosen by hand", () => {
	for (const [name, choice] of Object.entries(CHOICES)) {
		const text = wordsOf({words: "-size 64 128 -window AIFI 0 1s -closed"}, choice).join(" ");
		assert.equal(text.split("-window").length, 2, text);
		assert.match(
			text,
			name === "window" || name === "classes"
				? / -size 64 128 -closed$/
				: / -size 64 128 -window AIFI 0 1s -closed$/,
		);
	}
});

test("what the command cannot be told is said", () => {
	const trace = {path: "a.xht", threads: [], processes: [{pid: 5}, {pid: 5}], heaps: []},
		[choice] = CHOICES.whole;
	const cells = {bounds, frames: [], frame: [], count: 0, node: [], asker: [], nodeCount: 0},
		model = {cells, trace, images: [], cache: new Map()};
	const askedOf = (state) =>
		commandOf({
			trace,
			source: {},
			whole: model,
			panel: {filterOf: () => null},
			store: {state: {...first, ...state}},
			picture: {isPeak: false, isWhole: true, choice, model, selected: {hits: Uint8Array.of(1)}, itemMask: Uint8Array.of(1)},
		});
	const lacksOf = (state) => askedOf(state).lacks.join();
	assert.equal(lacksOf({}), "");
	assert.equal(lacksOf({item: {kind: "path", path: "1"}}), "");
	assert.equal(lacksOf({view: "map"}), "");
	assert.equal(lacksOf({view: "blocks", item: {kind: "path", path: "1"}}), "what is selected");
	for (const [state, words] of [
		[{measure: "peak"}, "the restriction to the peak"],
		[{filters: [{by: "process", key: "0", hide: false}]}, "? 5"],
		[{filters: [{by: "function", key: "a!b", hide: true}]}, "without a!b"],
		[
			{
				filters: [
					{by: "function", key: "a!b", hide: false},
					{by: "image", key: "a", hide: false},
				],
			},
			"a",
		],
		[{view: "blocks", filters: [{by: "life", key: "40", hide: false}]}, "never freed"],
		[{words: "-size 64 128", filters: [{by: "size", key: "5", hide: false}]}, "16 B to 31 B"],
		[{filters: [{by: "stack", key: "a!b", hide: false}]}, "a!b"],
	])
		assert.equal(lacksOf(state).replaceAll("\u2009", " "), words, JSON.stringify(state));
	for (const [state, words] of [
		[{isInverted: true}, "the inversion"],
		[{focus: "a"}, "the focus"],
		[{view: "blocks"}, "the order"],
		[{view: "sizes"}, "lifetimes beside the sizes"],
		[{filters: [{by: "life", key: "40", hide: false}]}, ""],
	]) {
		assert.equal(askedOf(state).shape.join(), words);
		assert.equal(lacksOf(state), "", "the numbers are the same");
	}
	assert.equal(askedOf({filters: [{by: "life", key: "40", hide: false}]}).words.at(-1), "so");
});
