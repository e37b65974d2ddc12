// SPDX-License-Identifier: MIT
// What axe-core finds on a page of the tests.
import {readFileSync} from "node:fs";
import {packages} from "./packages.mjs";

const SOURCE = readFileSync(packages().resolve("axe-core/axe.min.js"), "utf8");

/** @param {any} page @param {boolean} isColorOnly @returns {Promise<string[]>} what is serious */
export async function faultsOf(page, isColorOnly = false) {
	const options = {resultTypes: ["violations"], ...(isColorOnly && {runOnly: ["color-contrast"]})};
	if (!(await page.evaluate(() => "axe" in window))) await page.evaluate(SOURCE);
	const {violations} = await page.evaluate((chosen) => window.axe.run(document, chosen), options);
	return violations
		.filter((row) => ["serious", "critical"].includes(row.impact))
		.map((row) => {
			const nodes = row.nodes.slice(0, 3).map((node) => `${node.html.slice(0, 160)} ${node.failureSummary}`);
			return `${row.id}: ${nodes.join(" | ")}`;
		});
}
