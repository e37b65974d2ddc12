#!/usr/bin/env node
// SPDX-License-Identifier: MIT
// The layout of the flame view: what its sums, places and chains must hold, over random and made trees.
import assert from "node:assert/strict";
import test from "node:test";
import * as engine from "../../viewer/cells.js";
import {decodeCells} from "../../viewer/decode.js";
import {cellsOnPath, layoutFlame, neighboursOf} from "../../viewer/tree.js";
import {encodeCells, sumHits} from "./encode.mjs";
import {makeScene} from "./random.mjs";

function modelOf(scene) {
	const bytes = encodeCells(scene);
	return engine.makeModel(
		decodeCells(
			bytes.buffer.slice(bytes.byteOffset, bytes.byteOffset + bytes.byteLength),
			scene.trace.threads.length,
			scene.trace.heaps.length,
		),
		scene.trace,
	);
}

const all = (model) => engine.selectCells(model, {kind: "window", from: 0, to: model.last, classes: 15}, null);
const question = (hits, more) => ({
	hits,
	measure: "bytes",
	by: "function",
	isFolded: true,
	isInverted: false,
	isMerged: false,
	width: 960,
	opened: new Set(),
	focus: "",
	order: null,
	title: "all",
	...more,
});

/** Each parent is at least the sum of its children, which lie inside it and beside each other. */
function checkLayout({frames}) {
	const sums = new Float64Array(frames.length),
		right = Float64Array.from(frames, (frame) => frame.x);
	frames.forEach((frame, i) => {
		if (frame.parent < 0) return;
		const parent = frames[frame.parent];
		assert.ok(frame.parent < i && frame.depth === parent.depth + 1);
		sums[frame.parent] += frame.value;
		assert.ok(frame.x >= right[frame.parent] - 1e-6, "children do not overlap");
		right[frame.parent] = frame.x + frame.width;
		assert.ok(frame.x + frame.width <= parent.x + parent.width + 1e-6, "a child lies inside");
	});
	frames.forEach((frame, i) =>
		assert.ok(sums[i] <= frame.value + 1e-6, `${frame.name} is at least the sum of its children`),
	);
}

/** Steps of a drag: of moments, or of a window, seldom so far that all is made anew. */
function* stepsOf(scene, last) {
	for (const kind of ["moment", "window"]) {
		let [from, to] = [scene.below(last), last];
		const classes = 1 + scene.below(15);
		for (let step = 0; step < 60; step++) {
			const by = scene.below(5) - 2 || scene.below(last);
			from = Math.max(0, Math.min(last - 1, from + (step % 3 ? by : 0)));
			to = Math.max(from + 1, Math.min(last, to - (step % 2 ? by : 0)));
			yield kind === "moment" ? {kind, at: from} : {kind, from, to, classes};
		}
	}
}

for (const seed of [1, 2, 3, 4, 5])
	test(`a selection that follows a drag is the same as one made anew, seed ${seed}`, () => {
		const scene = makeScene(seed),
			model = modelOf(scene),
			other = modelOf(scene),
			mask = seed % 2 ? null : engine.filterCells(model, [{by: "thread", key: "1", hide: true}]),
			grouped = engine.groupCells(model, "function");
		let last = null,
			sums = null,
			followed = 0;
		for (const choice of stepsOf(scene, model.last)) {
			const selected = last
					? engine.followCells(model, choice, mask, last)
					: engine.selectCells(model, choice, mask),
				anew = engine.selectCells(other, choice, mask);
			if (selected.change) engine.followGroups(model, choice, selected.change, grouped, sums);
			else sums = engine.sumGroups(model, choice, selected, grouped, mask);
			followed += Number(selected.change !== null);
			for (const name of ["bytes", "blocks", "earlierBytes", "bits", "hits", "classBytes", "classBlocks"])
				assert.deepEqual(selected[name], anew[name], `${name} of ${JSON.stringify(choice)}`);
			assert.deepEqual(sums, engine.sumGroups(other, choice, anew, engine.groupCells(other, "function"), mask));
			for (const more of [{}, {by: "thread"}, {isInverted: true}, {measure: "blocks", isFolded: false}]) {
				const plain = question(anew.hits, more),
					layout = layoutFlame(model, {
						...plain,
						selected,
						hits: selected.hits,
						classes: engine.chosenBits(choice),
					});
				assert.deepEqual(layout.frames, layoutFlame(other, plain).frames);
			}
			last = {model, choice, mask, selected};
		}
		assert.ok(followed > 20, `${followed} steps were followed`);
	});

for (const seed of [1, 2, 3, 4, 5]) {
	test(`sums and places, seed ${seed}`, () => {
		const model = modelOf(makeScene(seed)),
			selected = all(model);
		for (const isInverted of [false, true])
			for (const isMerged of [false, true])
				for (const isFolded of [false, true])
					for (const by of ["function", "process", "heap"]) {
						const layout = layoutFlame(
							model,
							question(selected.hits, {isInverted, isMerged, isFolded, by}),
						);
						assert.equal(layout.total, selected.bytes);
						checkLayout(layout);
						for (const frame of layout.frames.filter((_, i) => i % 7 === seed)) {
							if (frame.kind === "root" || frame.kind === "small") continue;
							const mask = cellsOnPath(model, frame.path, {isInverted, isMerged, isFolded, by});
							assert.equal(
								mask.reduce((sum, isIn, i) => sum + isIn * selected.hits[i] * model.cells.bytes[i], 0),
								frame.value,
								`the cells of ${frame.name} are its bytes`,
							);
						}
					}
		for (const measure of ["blocks", "temporaries"])
			assert.equal(
				layoutFlame(model, question(selected.hits, {measure})).total,
				sumHits(selected.hits, model.cells[measure]),
			);
	});

	test(`places during a drag, seed ${seed}`, () => {
		const scene = makeScene(seed),
			model = modelOf(scene);
		const settled = layoutFlame(model, question(all(model).hits));
		const order = new Map(settled.frames.map((frame) => [frame.key, frame.x]));
		for (let to = 3; to < model.last; to += 3) {
			const {hits} = engine.selectCells(model, {kind: "window", from: 1, to, classes: 2}, null);
			const layout = layoutFlame(model, question(hits, {order}));
			checkLayout(layout);
			for (const frame of layout.frames) {
				const before = layout.frames
					.filter((other) => other.parent === frame.parent && other.kind !== "small" && order.has(other.key))
					.map((other) => order.get(other.key));
				assert.deepEqual(
					before,
					[...before].sort((a, b) => a - b),
				);
			}
		}
	});
}

/** Paths "a/b/c" with bytes, all live. */
function sceneOf(paths) {
	const names = [...new Set(Object.keys(paths).flatMap((path) => path.split("/")))],
		nodes = [],
		found = new Map();
	const nodeOf = (path) => {
		if (path === "") return -1;
		if (!found.has(path)) {
			const parent = nodeOf(path.split("/").slice(0, -1).join("/"));
			found.set(path, nodes.push({parent, function: names.indexOf(path.split("/").at(-1))}) - 1);
		}
		return found.get(path);
	};
	const blocks = Object.entries(paths).map(([path, size]) => ({
		node: nodeOf(path),
		thread: 0,
		heap: 0,
		size,
		begin: 1,
		end: 100,
		kind: 1,
	}));
	const {trace} = makeScene(1, 0);
	return {nodes, blocks, bounds: [-1, 50, 100], functions: names.map((name) => ["app", name, name, "", 0]), trace};
}

test("a chain says how many frames it has, and shows them", () => {
	const model = modelOf(sceneOf({"a/b/c/d/e/f": 900, "a/b/c/d/e/g": 90, "a/b/x": 5}));
	const {hits} = all(model),
		closed = layoutFlame(model, question(hits));
	const chain = closed.frames.find((frame) => frame.kind === "chain");
	assert.equal(chain.count, 4);
	assert.equal(chain.name, "a … d");
	const opened = layoutFlame(model, question(hits, {opened: new Set([chain.key])}));
	checkLayout(opened);
	assert.deepEqual(
		opened.frames.map((frame) => frame.name),
		["all", "a", "b", "c", "d", "e", "f", "g", "x"],
	);
	for (const frame of closed.frames) {
		if (frame.kind !== "chain")
			assert.equal(opened.frames.find((other) => other.key === frame.key).width, frame.width);
	}
});

test("recursive calls are merged", () => {
	const model = modelOf(sceneOf({"a/f/g/f/h": 100, "a/f/g/f/g/k": 50}));
	const layout = layoutFlame(model, question(all(model).hits, {isMerged: true}));
	const path = (frame) => (frame.parent < 0 ? "" : path(layout.frames[frame.parent]) + "/" + frame.name);
	assert.deepEqual(
		layout.frames.slice(1).map((frame) => `${path(frame)} ${frame.value}`),
		["/a 150", "/a/f 150", "/a/f/h 100", "/a/f/g 50", "/a/f/g/k 50"],
	);
});

test("inverted: from the function that asked", () => {
	const model = modelOf(sceneOf({"main/a/alloc": 100, "main/b/alloc": 50, "main/b/other": 7}));
	const layout = layoutFlame(model, question(all(model).hits, {isInverted: true}));
	assert.deepEqual(
		layout.frames.map((frame) => `${frame.depth} ${frame.name} ${frame.value}`),
		["0 all 157", "1 alloc 150", "2 a 100", "3 main 100", "2 b 50", "3 main 50", "1 other 7", "2 b 7", "3 main 7"],
	);
});

test("focus and its path", () => {
	const model = modelOf(sceneOf({"main/a/x": 100, "main/b/y": 50}));
	const {hits} = all(model),
		layout = layoutFlame(model, question(hits));
	const b = layout.frames.find((frame) => frame.name === "b");
	const focused = layoutFlame(model, question(hits, {focus: b.path}));
	assert.deepEqual(
		focused.frames.map((frame) => `${frame.name} ${frame.value} ${frame.width}`),
		["all 150 960", "1 frame above 50 960", "b 50 960", "y 50 960"],
	);
	assert.equal(layoutFlame(model, question(hits, {focus: "zz.zz"})).isFocused, false);
});

test("a chain of 16,000 frames", () => {
	const nodes = Array.from({length: 16000}, (_, i) => ({parent: i - 1, function: i % 7}));
	const model = modelOf({
		...sceneOf({"a/b/c/d/e/f/g": 1}),
		nodes,
		blocks: [{node: 15999, thread: 0, heap: 0, size: 9, begin: 1, end: 100, kind: 1}],
	});
	const {hits} = all(model),
		closed = layoutFlame(model, question(hits));
	assert.deepEqual(
		closed.frames.map((frame) => frame.kind),
		["root", "chain", "frame"],
	);
	assert.equal(closed.frames[1].count, 15999);
	assert.equal(layoutFlame(model, question(hits, {opened: new Set([closed.frames[1].key])})).rows, 16001);
	assert.equal(layoutFlame(model, question(hits, {isMerged: true})).total, 9);
	const inverted = layoutFlame(model, question(hits, {isInverted: true}));
	assert.equal(inverted.frames.find((frame) => frame.kind === "chain").count, 15998);
	const ids = new Set(nodes.map((_, node) => engine.groupName(model, "stack", node).id));
	assert.equal(ids.size, nodes.length, "each stack has an id of its own");
	assert.ok(
		[...ids].every((id) => id.length < 13),
		"which does not grow with its depth",
	);
});

test("callers and callees count recursive calls once", () => {
	const scene = sceneOf({"main/a/f/g": 100, "main/b/f/f/h": 50, "main/b/f": 7, "main/c": 1000});
	const model = modelOf(scene),
		{hits} = all(model),
		frame = (name) => model.cells.frames.findIndex((row) => row.short === name);
	const found = neighboursOf(model, hits, "bytes", frame("f"));
	assert.equal(found.value, 157);
	const named = (rows) =>
		rows.map((row) => `${row.frame < 0 ? "-" : model.cells.frames[row.frame].short} ${row.value}`);
	assert.deepEqual(named(found.callers), ["a 100", "b 57"]);
	assert.deepEqual(named(found.callees), ["g 100", "h 50", "- 7"]);
});
