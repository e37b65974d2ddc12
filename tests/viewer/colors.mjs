#!/usr/bin/env node
// SPDX-License-Identifier: MIT
// Colours of style.css, and what canvases make of them: all text has enough contrast, and the sizes of sources stay below their limit.
import assert from "node:assert/strict";
import {readdirSync, readFileSync, statSync} from "node:fs";
import path from "node:path";
import test from "node:test";
import {contrastOf, CONTRAST_MIN, frameColors, readPalette} from "../../viewer/palette.js";
import {SOURCE} from "./packages.mjs";

/** Bytes of the page's own source, with the views that are to come. */
const SOURCE_MAX = 350_000;
const VIEWER = path.join(SOURCE, "viewer"),
	STYLE = readFileSync(path.join(VIEWER, "style.css"), "utf8");

const VALUES = Object.fromEntries(
	[.../:root \{[^}]*\}/.exec(STYLE)[0].matchAll(/--([\w-]+): ([^;]+);/g)].map(([, name, value]) => [name, value]),
);
const palettes = Object.fromEntries(
	["light", "dark"].map((theme) => [theme, readPalette((name) => VALUES[name], theme === "dark")]),
);

for (const [theme, colors] of Object.entries(palettes)) {
	test(`text on grounds, ${theme}`, () => {
		const pairs = [
			["ink", "panel"],
			["ink2", "panel"],
			["ink3", "panel"],
			["ink3", "page"],
			["ink2", "page"],
			["ink3", "faint"],
			["ink", "accent-ground"],
			["ink2", "accent-ground"],
			["ink3", "accent-ground"],
			["accent", "accent-ground"],
			["accent", "panel"],
			["accent", "page"],
			["more", "panel"],
			["more", "accent-ground"],
			["more", "page"],
			["less", "panel"],
			["less", "accent-ground"],
			["less", "page"],
			["warn", "warn-ground"],
			["ink2", "segments"],
			["ink", "chosen"],
			["ink3", "segments"],
			["ink3", "chosen"],
			["hit-ink", "hit"],
			["panel", "accent"],
			["ink2", "raised"],
		];
		for (const [text, ground] of pairs) {
			const contrast = contrastOf(colors[text], colors[ground]);
			assert.ok(contrast >= CONTRAST_MIN, `${text} on ${ground}: ${contrast.toFixed(2)}`);
		}
	});

	test(`text in frames, ${theme}`, () => {
		for (let series = -1; series < 6; series++) {
			for (const style of ["plain", "pale", "dim", "hit"]) {
				for (const change of [NaN, -1, -0.5, 0, 0.1, 0.7, 1]) {
					const {ground, text, value} = frameColors(colors, series, style, change);
					for (const color of [text, value])
						assert.ok(
							contrastOf(color, ground) >= CONTRAST_MIN,
							`series ${series}, ${style}, ${change}: ${contrastOf(color, ground).toFixed(2)}`,
						);
				}
			}
		}
	});
}

test("own source is small", () => {
	const sizes = readdirSync(VIEWER)
		.filter((name) => /\.(js|css|html|ts)$/.test(name))
		.map((name) => statSync(path.join(VIEWER, name)).size);
	const total = sizes.reduce((a, b) => a + b);
	assert.ok(total <= SOURCE_MAX, `${total} bytes`);
});
