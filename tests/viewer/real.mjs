#!/usr/bin/env node
// SPDX-License-Identifier: MIT
// The contract against the command: recorded traces become cells by `xheap dump`, and sums of the engine are those of `xheap heap -totals`, to the byte:
// each class of windows, and moments, on bounds.
import assert from "node:assert/strict";
import {spawnSync} from "node:child_process";
import {readdirSync} from "node:fs";
import path from "node:path";
import test from "node:test";
import {CLASSES, makeModel, selectCells} from "../../viewer/cells.js";
import {decodeCells} from "../../viewer/decode.js";
import {commandTime} from "../../viewer/format.js";
import {encodeCells, sumHits} from "./encode.mjs";
import {SOURCE} from "./packages.mjs";
import {randomFrom} from "./random.mjs";

const XHEAP = process.env.XHEAP ?? path.join(SOURCE, "build/xheap");
const FOLDERS = ["tests/golden/traces", "tests/older"],
	WINDOWS = 3,
	MOMENTS = 2;
const KINDS = {free: 0, realloc: 0, destroy: 0, gap: 0, conflict: 0, exit: 2, open: 1, "alive when recording ended": 1};

function run(...words) {
	const done = spawnSync(XHEAP, words, {encoding: "utf8", maxBuffer: 1 << 28});
	assert.ok(done.status === 0, `${words.join(" ")}: ${done.stderr}`);
	return done.stdout;
}

const rowsOf = (trace, what) =>
	run("dump", trace, what, "-noIndex", "-format", "json")
		.trim()
		.split("\n")
		.filter(Boolean)
		.map((line) => JSON.parse(line));
const heap = (trace, ...words) => JSON.parse(run("heap", trace, "-noIndex", "-totals", "-format", "json", ...words));
const totals = (trace, ...words) => heap(trace, ...words).totals;

/** @returns {any} blocks with indexes of nodes, and a trace with what the engine needs */
function readTrace(trace) {
	const stacks = rowsOf(trace, "-stacks"),
		place = new Map(),
		functions = [],
		names = new Map(),
		nodes = [];
	const nameOf = (text) => names.get(text) ?? names.set(text, functions.push(["", text, text, "", 0]) - 1).get(text);
	for (const row of stacks) {
		place.set(row.stack_id, nodes.length);
		nodes.push({parent: place.get(row.parent_id) ?? -1, function: nameOf(row.frame)});
	}
	const none = nodes.push({parent: -1, function: nameOf("[no stack]")}) - 1;
	const earlier =
		nodes.push({
			parent: -1,
			function: functions.push(["", "[before the trace]", "[before the trace]", "", 6]) - 1,
		}) - 1;
	const allocations = rowsOf(trace, "-allocations"),
		last = allocations.reduce((most, row) => Math.max(most, row.birth_ns ?? 0, row.end_ns ?? 0), 0);
	const blocks = allocations.map((row) => ({
		node: row.birth_ns === undefined ? earlier : (place.get(row.stack_id) ?? none),
		thread: 0,
		heap: 0,
		size: row.size,
		begin: row.birth_ns ?? -1,
		end: row.end_ns ?? last,
		kind: KINDS[row.end_kind],
		isRealloc: Number(row.previous_id !== undefined),
	}));
	return {blocks, nodes, functions, last, trace: {threads: [{process: 0}], processes: [{}], heaps: [{}]}};
}

for (const folder of FOLDERS)
	for (const name of readdirSync(path.join(SOURCE, folder)).filter((file) => file.endsWith(".xht"))) {
		const file = path.join(SOURCE, folder, name),
			{sample_bytes: sampled, ended_early: isCut} = heap(file);
		test(
			`${folder}/${name}`,
			{skip: sampled ? "a sample has estimates" : isCut ? "the dump does not say when a recording ended" : false},
			(t) => {
				const scene = readTrace(file),
					whole = totals(file);
				if (whole.total_count !== scene.blocks.filter((block) => block.begin >= 0).length) {
					t.skip("the dump has other blocks: nested ones, or none for sums");
					return;
				}
				const random = randomFrom(name.length),
					peak = Math.round((whole.peak_at_us ?? 0) * 1000);
				const bounds = [
					...new Set([
						-1,
						scene.last,
						peak,
						...Array.from({length: 63}, (_, i) => Math.round((scene.last * (i + 1)) / 64)),
					]),
				].sort((a, b) => a - b);
				const bytes = encodeCells({...scene, bounds, peak: bounds.indexOf(peak)});
				const model = makeModel(
					decodeCells(bytes.buffer.slice(bytes.byteOffset, bytes.byteOffset + bytes.length), 1, 1),
					scene.trace,
				);
				const below = (limit) => Math.floor(random() * limit);
				for (let i = 0; i < WINDOWS; i++) {
					const from = below(model.last),
						to = from + 1 + below(model.last - from);
					CLASSES.forEach((code, index) => {
						const wanted = totals(
							file,
							"-window",
							code,
							commandTime(bounds[from] + 1),
							commandTime(bounds[to]),
						);
						const found = selectCells(model, {kind: "window", from, to, classes: 1 << index}, null);
						assert.deepEqual(
							[found.bytes, found.blocks, sumHits(found.hits, model.cells.reallocs)],
							[wanted.total_bytes, wanted.total_count, wanted.realloc_count],
							`${code} ${bounds[from]} ${bounds[to]}`,
						);
					});
				}
				// Sums in place of events have no peak.
				if (whole.peak_bytes === undefined) return;
				for (let i = 0; i < MOMENTS; i++) {
					const at = below(model.last + 1),
						wanted = totals(file, "-at", commandTime(Math.max(0, bounds[at])));
					const found = selectCells(model, {kind: "moment", at}, null);
					assert.deepEqual(
						[found.bytes, found.blocks],
						[wanted.peak_bytes, wanted.peak_count],
						`at ${bounds[at]}`,
					);
				}
				const found = selectCells(model, {kind: "moment", at: model.cells.peak}, null);
				assert.deepEqual(
					[found.bytes, found.blocks],
					[whole.peak_bytes, whole.peak_count],
					"check 5: the peak",
				);
			},
		);
	}
