#!/usr/bin/env node
// SPDX-License-Identifier: MIT
// Cells as the server makes them, from recorded traces, by a pass and from an index: the page reads them, and sums of its engine are those of `xheap heap`,
// to the byte: each class of windows, moments, the peak, functions. SOAK=N asks for N windows of each trace.
import assert from "node:assert/strict";
import {spawnSync} from "node:child_process";
import {existsSync, mkdtempSync, readdirSync, rmSync} from "node:fs";
import os from "node:os";
import path from "node:path";
import test, {after} from "node:test";
import {CLASSES, groupCells, groupName, makeModel, selectCells, sumGroups} from "../../viewer/cells.js";
import {sumHits} from "./encode.mjs";
import {decodeCells} from "../../viewer/decode.js";
import {skip, SOURCE} from "./packages.mjs";
import {randomFrom} from "./random.mjs";

const BUILD = process.env.BUILD ?? path.join(SOURCE, "build"),
	XHEAP = process.env.XHEAP ?? path.join(BUILD, "xheap"),
	MAKE_CELLS = path.join(BUILD, "tests/viewer/make_cells");
const FOLDERS = ["tests/golden/traces", "tests/older"],
	WINDOWS = Number(process.env.SOAK ?? 2);
if (!existsSync(MAKE_CELLS)) skip("tests/viewer/make_cells is not built");

const cache = mkdtempSync(path.join(os.tmpdir(), "cells-"));
after(() => rmSync(cache, {recursive: true}));
const INDEXED = {...process.env, XDG_CACHE_HOME: cache, XHEAP_INDEX_EVENTS: "1"};

function run(program, words, env = process.env) {
	const done = spawnSync(program, words, {maxBuffer: 1 << 28, env});
	assert.ok(done.status === 0, `${program} ${words.join(" ")}: ${done.stderr}`);
	return done.stdout;
}

const heap = (trace, ...words) =>
	JSON.parse(run(XHEAP, ["heap", trace, "-noIndex", "-format", "json", ...words]).toString());
const inNs = (time) => `${time}ns`;

function readModel(trace, words = [], env = {...process.env, XDG_CACHE_HOME: path.join(cache, "none")}) {
	const lists = JSON.parse(run(MAKE_CELLS, ["-lists", trace]).toString());
	lists.processes = new Array(lists.processes).fill({});
	lists.heaps = new Array(lists.heaps + 1).fill({});
	const bytes = run(MAKE_CELLS, [trace, ...words], env);
	const buffer = bytes.buffer.slice(bytes.byteOffset, bytes.byteOffset + bytes.length);
	return makeModel(decodeCells(buffer, lists.threads.length, lists.heaps.length), lists);
}

function checkWindow(trace, model, from, to) {
	const {bounds} = model.cells;
	CLASSES.forEach((code, index) => {
		const {totals: wanted} = heap(trace, "-totals", "-window", code, inNs(bounds[from] + 1), inNs(bounds[to]));
		const found = selectCells(model, {kind: "window", from, to, classes: 1 << index}, null),
			[reallocs, temporaries] = ["reallocs", "temporaries"].map((name) =>
				sumHits(found.hits, model.cells[name]),
			);
		assert.deepEqual(
			[found.bytes, found.blocks, reallocs, temporaries],
			[wanted.total_bytes, wanted.total_count, wanted.realloc_count, wanted.temporary_count ?? temporaries],
			`${code} ${bounds[from]} ${bounds[to]}`,
		);
	});
}

function checkMoment(trace, model, at) {
	const time = model.cells.bounds[at],
		{totals: wanted} = heap(trace, "-totals", "-at", inNs(Math.max(0, time)));
	if (time < 0 || wanted.peak_bytes === undefined) return;
	const found = selectCells(model, {kind: "moment", at}, null);
	assert.deepEqual([found.bytes, found.blocks], [wanted.peak_bytes, wanted.peak_count], `at ${time}`);
}

/** Sums by function, of the whole run. */
function checkFunctions(trace, model) {
	const {actions} = heap(trace, "-frames", "-top", "1000000"),
		choice = {kind: "window", from: 0, to: model.last, classes: 15};
	const sums = sumGroups(
		model,
		choice,
		selectCells(model, choice, null),
		groupCells(model, "function"),
		null,
	);
	const found = {},
		wanted = {};
	sums.bytes.forEach((bytes, key) => {
		if (bytes) found[groupName(model, "function", key).id] = bytes;
	});
	for (const {frame, total_bytes: bytes} of actions[0].rows) {
		const full = frame.symbol ?? `+${frame.offset}`;
		if (bytes) wanted[`${frame.image ?? ""}!${full}`] = bytes;
	}
	assert.deepEqual(found, wanted);
}

function checkSome(trace, model, random) {
	const below = (limit) => Math.floor(random() * limit);
	if (model.cells.peak >= 0) checkMoment(trace, model, model.cells.peak);
	for (let i = 0; i < WINDOWS; i++) {
		const from = below(model.last);
		checkWindow(trace, model, from, from + 1 + below(model.last - from));
		checkMoment(trace, model, below(model.last + 1));
	}
}

for (const folder of FOLDERS)
	for (const name of readdirSync(path.join(SOURCE, folder)).filter((file) => file.endsWith(".xht"))) {
		const trace = path.join(SOURCE, folder, name);
		test(`${folder}/${name}`, (t) => {
			const model = readModel(trace),
				random = randomFrom(name.length);
			run(XHEAP, ["heap", trace, "-totals"], INDEXED);
			const indexed = readModel(trace, [], INDEXED);
			assert.equal(model.cells.lumpedStacks, 0);
			checkFunctions(trace, model);
			checkFunctions(trace, indexed);
			if (model.cells.peak < 0) {
				t.skip("sums in place of events have no moments");
				return;
			}
			const {bounds} = model.cells,
				from = Math.floor(random() * (model.last - 1));
			const part = readModel(trace, [String(bounds[from]), String(bounds[model.last]), "64"]);
			assert.equal(part.cells.whole, false);
			for (const one of [model, indexed, part]) checkSome(trace, one, random);
		});
	}
