#!/usr/bin/env node
// SPDX-License-Identifier: MIT
// The engine against a scan of single blocks: each sum is equal, for random windows and moments on bounds.
import assert from "node:assert/strict";
import test from "node:test";
import * as engine from "../../viewer/cells.js";
import {isInSpread} from "../../viewer/compare.js";
import {decodeCells} from "../../viewer/decode.js";
import {readAddress, writeAddress} from "../../viewer/store.js";
import {encodeCells, sizeClass, lifeClass, sumHits} from "./encode.mjs";
import {makeScene} from "./random.mjs";

const SEEDS = [1, 2, 3, 4, 5, 6, 7, 8];
const WINDOWS = 40;

function modelOf(scene, more = {}) {
	const bytes = encodeCells({...scene, ...more});
	const buffer = bytes.buffer.slice(bytes.byteOffset, bytes.byteOffset + bytes.byteLength);
	return engine.makeModel(decodeCells(buffer, scene.trace.threads.length, scene.trace.heaps.length), scene.trace);
}

/** By times, as docs/semantics.md says it: the window is from T1 to T2, both inside. */
function classByTimes(block, t1, t2) {
	const isGone = block.kind !== 1 && block.end < t1 && block.begin < t1;
	if (block.begin > t2 || isGone) return "";
	const isFreedInside = block.kind === 0 && block.end >= t1 && block.end <= t2;
	return (block.begin >= t1 ? "AI" : "AO") + (isFreedInside ? "FI" : "FO");
}

const livesAt = (block, time) => block.begin <= time && (block.kind === 1 || block.end > time);
const sum = (blocks, value) => blocks.reduce((total, block) => total + value(block), 0);

function windowsOf(scene) {
	return Array.from({length: WINDOWS}, () => {
		const [from, to] = [scene.below(scene.bounds.length), scene.below(scene.bounds.length)].sort((a, b) => a - b);
		return from === to ? null : {kind: "window", from, to, classes: 1 + scene.below(15)};
	}).filter(Boolean);
}

function expected(scene, choice) {
	if (choice.kind === "moment") return scene.blocks.filter((block) => livesAt(block, scene.bounds[choice.at]));
	const t1 = scene.bounds[choice.from] + 1,
		t2 = scene.bounds[choice.to];
	return scene.blocks.filter((block) => {
		const index = engine.CLASSES.indexOf(classByTimes(block, t1, t2));
		return index >= 0 && choice.classes & (1 << index);
	});
}

const choicesOf = (scene) => [...windowsOf(scene), ...scene.bounds.map((_, at) => ({kind: "moment", at}))];

for (const seed of SEEDS) {
	test(`sums and classes, seed ${seed}`, () => {
		const scene = makeScene(seed),
			model = modelOf(scene);
		for (const choice of choicesOf(scene)) {
			const found = engine.selectCells(model, choice, null),
				wanted = expected(scene, choice);
			assert.equal(
				found.bytes,
				sum(wanted, (block) => block.size),
				JSON.stringify(choice),
			);
			assert.equal(found.blocks, wanted.length);
			assert.equal(
				sumHits(found.hits, model.cells.reallocs),
				sum(wanted, (block) => block.isRealloc),
			);
			assert.equal(
				sumHits(found.hits, model.cells.temporaries),
				sum(wanted, (block) => block.isTemporary),
			);
			if (choice.kind === "window") {
				engine.CLASSES.forEach((name, i) => {
					const only = expected(scene, {...choice, classes: 1 << i});
					assert.equal(
						found.classBytes[i],
						sum(only, (block) => block.size),
						name,
					);
					assert.equal(found.classBlocks[i], only.length, name);
				});
			}
		}
	});

	test(`groups, seed ${seed}`, () => {
		const scene = makeScene(seed),
			model = modelOf(scene);
		const asker = (block) => scene.nodes[block.node].asker;
		const keys = {
			function: (block) => scene.nodes[asker(block)].function,
			stack: asker,
			thread: (block) => block.thread,
			heap: (block) => block.heap,
			process: (block) => scene.trace.threads[block.thread].process,
			size: (block) => sizeClass(block.size),
			life: (block) => (block.kind ? 40 : lifeClass(block.end - Math.max(0, block.begin))),
			image: (block) => model.images.indexOf(scene.functions[scene.nodes[asker(block)].function][0]),
		};
		for (const choice of choicesOf(scene).slice(0, 30)) {
			const selected = engine.selectCells(model, choice, null),
				wanted = expected(scene, choice);
			for (const [by, key] of Object.entries(keys)) {
				const sums = engine.sumGroups(model, choice, selected, engine.groupCells(model, by), null),
					naive = new Float64Array(sums.bytes.length);
				for (const block of wanted) naive[key(block)] += block.size;
				assert.deepEqual(sums.bytes, naive, by);
			}
		}
	});

	test(`made and net change, seed ${seed}`, () => {
		const scene = makeScene(seed),
			model = modelOf(scene),
			grouped = engine.groupCells(model, "thread");
		for (const choice of windowsOf(scene).slice(0, 10)) {
			const sums = engine.sumGroups(model, choice, engine.selectCells(model, choice, null), grouped, null);
			const made = new Float64Array(5),
				change = new Float64Array(5);
			for (const block of scene.blocks) {
				const name = classByTimes(block, scene.bounds[choice.from] + 1, scene.bounds[choice.to]);
				if (name.startsWith("AI")) made[block.thread] += block.size;
				change[block.thread] += name === "AIFO" ? block.size : name === "AOFI" ? -block.size : 0;
			}
			assert.deepEqual(sums.made, made);
			assert.deepEqual(sums.change, change);
		}
	});

	test(`curves, seed ${seed}`, () => {
		const scene = makeScene(seed),
			model = modelOf(scene);
		const naive = (blocks) =>
			Float64Array.from(scene.bounds, (time) =>
				sum(
					blocks.filter((block) => livesAt(block, time)),
					(block) => block.size,
				),
			);
		assert.deepEqual(engine.liveCurve(model, null).slice(), naive(scene.blocks));
		for (let thread = 0; thread < 5; thread++) {
			assert.deepEqual(
				engine.groupCurve(model, "thread", thread, null).slice(),
				naive(scene.blocks.filter((block) => block.thread === thread)),
			);
		}
		const total = new Float64Array(scene.bounds.length);
		for (const curve of engine.seriesCurves(model, "function", []))
			curve.forEach((value, i) => (total[i] += value));
		assert.deepEqual(total, naive(scene.blocks));
	});

	test(`the most that lived, seed ${seed}`, () => {
		const scene = makeScene(seed),
			model = modelOf(scene),
			isOpen = (block) => block.kind === 1;
		for (const passes of [isOpen, ...[0, 1, 2, 3, 4].map((thread) => (block) => block.thread === thread)]) {
			const blocks = scene.blocks.filter(passes),
				mask = engine.maskWhere(model, (i) =>
					passes({thread: model.cells.thread[i], kind: model.cells.kind[i]}),
				);
			const {most, isMost} = engine.factsOf(model, mask),
				truth = Math.max(
					...blocks.map(({begin}) =>
						sum(
							blocks.filter((block) => livesAt(block, begin)),
							({size}) => size,
						),
					),
				);
			assert.ok(isMost ? most === truth : most <= truth, `${most} of ${truth}`);
			if (passes === isOpen) assert.ok(isMost, "what only grows has its most at a bound");
		}
	});

	test(`filters, seed ${seed}`, () => {
		const scene = makeScene(seed),
			model = modelOf(scene);
		const hasFunction = (block, index) => {
			for (let node = block.node; node >= 0; node = scene.nodes[node].parent)
				if (scene.nodes[node].function === index) return true;
			return false;
		};
		const choice = {kind: "window", from: 0, to: model.last, classes: 15};
		for (let index = 0; index < 5; index++) {
			for (const hide of [false, true]) {
				const mask = engine.filterCells(model, [
					{by: "function", key: model.cells.frames[index].key, hide},
					{by: "process", key: "1", hide: false},
				]);
				const wanted = scene.blocks.filter((block) => hasFunction(block, index) !== hide && block.thread >= 2);
				assert.equal(
					engine.selectCells(model, choice, mask).bytes,
					sum(wanted, (block) => block.size),
				);
			}
		}
	});

	test(`nodes, seed ${seed}`, () => {
		const scene = makeScene(seed),
			model = modelOf(scene),
			{cells} = model;
		const selected = engine.selectCells(model, {kind: "window", from: 0, to: model.last, classes: 15}, null);
		for (const isFolded of [true, false]) {
			const sums = engine.nodeSums(model, selected.hits, cells.bytes, isFolded);
			assert.equal(
				sums.reduce((a, b) => a + b),
				selected.bytes,
				"folding changes no sum",
			);
			engine.addBelow(model, sums);
			let roots = 0;
			for (let node = 0; node < cells.nodeCount; node++) if (cells.parent[node] < 0) roots += sums[node];
			assert.equal(roots, selected.bytes);
		}
	});
}

test("a process that ended before the window is in no class", () => {
	const block = {node: 0, thread: 0, heap: 0, size: 7, begin: 5, end: 10, kind: 2};
	const scene = makeScene(1, 0);
	const model = modelOf(scene, {blocks: [block], bounds: [-1, 4, 9, 10, 20]});
	const classes = (from, to) => [
		...engine.selectCells(model, {kind: "window", from, to, classes: 15}, null).classBytes,
	];
	assert.deepEqual(classes(0, 1), [0, 0, 0, 0]);
	assert.deepEqual(classes(1, 2), [0, 7, 0, 0], "made, still there");
	assert.deepEqual(classes(2, 3), [0, 0, 0, 7], "its process ends inside: never freed");
	assert.deepEqual(classes(3, 4), [0, 0, 0, 0], "ended before");
});

test("blocks from before the trace are live, and in no class", () => {
	const scene = makeScene(1, 0),
		block = {node: 0, thread: 0, heap: 0, size: 7, begin: -1, end: 10, kind: 0};
	const model = modelOf(scene, {blocks: [block], functions: scene.functions.map((row) => [...row.slice(0, 4), 6])});
	const window = engine.selectCells(model, {kind: "window", from: 0, to: model.last, classes: 15}, null);
	assert.deepEqual([window.bytes, window.earlierBytes, ...window.classBytes], [0, 7, 0, 0, 0, 0]);
	assert.equal(engine.selectCells(model, {kind: "moment", at: 0}, null).bytes, 7);
	assert.equal(engine.liveCurve(model, null)[0], 7);
});

test("sums above 4 GiB are exact, and above 2^53 are said to be rounded", () => {
	const scene = makeScene(1, 0),
		block = {node: 0, thread: 0, heap: 0, begin: 5, end: 10, kind: 0};
	const large = modelOf(scene, {
		blocks: [
			{...block, size: 2 ** 40 + 1},
			{...block, size: 2 ** 40 + 2},
		],
	});
	const choice = {kind: "window", from: 0, to: large.last, classes: 15};
	assert.equal(engine.selectCells(large, choice, null).bytes, 2 ** 41 + 3);
	assert.equal(large.cells.isRounded, false);
	const larger = modelOf(scene, {
		blocks: [
			{...block, size: 2 ** 52},
			{...block, size: 2 ** 52},
		],
	});
	assert.equal(larger.cells.isRounded, true);
});

test("a range has the colours of the whole run", () => {
	const scene = makeScene(5),
		whole = modelOf(scene),
		{trace} = scene,
		bounds = scene.bounds.slice(10, 14);
	const bytes = encodeCells({...scene, bounds, whole: false}),
		part = engine.makeModel(
			decodeCells(bytes.buffer.slice(bytes.byteOffset, bytes.byteOffset + bytes.length), 5, 2),
			trace,
			whole,
		);
	for (const by of ["function", "stack", "image", "thread", "process", "heap", "size", "life"]) {
		const {groups} = engine.findSeries(whole, by),
			{ofGroup} = engine.findSeries(part, by);
		ofGroup.forEach((color, key) => {
			if (color < engine.SERIES_MAX)
				assert.equal(engine.groupName(part, by, key).id, engine.groupName(whole, by, groups[color]).id);
		});
		assert.ok(
			ofGroup.some((color) => color === 0),
			by,
		);
	}
});

test("the nearest bound", () => {
	const model = modelOf(makeScene(1, 0), {bounds: [-1, 10, 20, 100]});
	assert.deepEqual(
		[-5, 4, 5, 14, 16, 59, 61, 1000].map((time) => engine.nearestBound(model, time)),
		[0, 0, 1, 1, 2, 2, 3, 3],
	);
});

test("damaged cells are refused with a line of text", () => {
	const scene = makeScene(3, 200),
		good = encodeCells(scene);
	const decode = (bytes) =>
		decodeCells(bytes.buffer.slice(bytes.byteOffset, bytes.byteOffset + bytes.byteLength), 5, 2);
	assert.doesNotThrow(() => decode(good));
	for (const length of [0, 8, 16, 100, good.length - 8]) assert.throws(() => decode(good.subarray(0, length)));
	assert.throws(
		() => decodeCells(good.buffer.slice(good.byteOffset, good.byteOffset + good.byteLength), 1, 2),
		/thread/,
	);
	const {random} = scene;
	for (let round = 0; round < 300; round++) {
		const bad = Buffer.from(good);
		bad[16 + Math.floor(random() * (bad.length - 16))] ^= 1 << Math.floor(random() * 8);
		try {
			const model = engine.makeModel(decode(bad), scene.trace);
			engine.selectCells(model, {kind: "window", from: 0, to: model.last, classes: 15}, null);
		} catch (error) {
			assert.ok(error instanceof Error);
		}
	}
});

test("an address is read as far as it means something", () => {
	const first = readAddress(""),
		filter = {by: "image", key: "a b&c=d\n", hide: true},
		state = {...first, view: "table", filters: [filter], range: {from: 1, to: 2}, search: "<b>", opened: [1, 2]};
	assert.deepEqual(readAddress(writeAddress(state)), state);
	for (const address of [
		`#filters=${encodeURIComponent(JSON.stringify(new Array(1000).fill(filter)))}`,
		"#filters=[1]",
		"#filters={",
		'#range={"from":2,"to":1}',
		"#view=other&by=nothing&measure=1",
		`#opened=[${"1,".repeat(20000)}1]`,
		'#item={"kind":"group","by":"constructor","key":"a"}',
		"#__proto__=1&constructor=2&unknown=3",
		"#selection=",
		"#" + "%".repeat(100),
	])
		assert.deepEqual(readAddress(address), first, address.slice(0, 60));
});

test("a change within Welch's interval is in the spread of the runs", () => {
	const some = Array.from({length: 40}, (_, i) => (i % 2) * 2),
		more = (change) => some.map((number) => number + change);
	for (const [a, b, isIn] of [
		[[10, 12], [20, 24], true],
		[[10, 11, 12, 10], [20, 21, 22, 20], false],
		[[10], [20, 24], true],
		[[10], [20, 20], false],
		[[5], [5, 5], false],
		[some, more(0.44), true],
		[some, more(0.45), false],
	]) {
		assert.equal(isInSpread([a, b]), isIn, `${a} to ${b}`);
		assert.equal(isInSpread([b, a]), isIn, `${b} to ${a}`);
	}
});
