// SPDX-License-Identifier: MIT
// A picture of the page for people who read: node tests/viewer/picture.mjs PAGE.html PICTURE.png [ADDRESS], where ADDRESS is what stands behind #.
import path from "node:path";
import {launchBrowser} from "./packages.mjs";

const [page, picture, address = ""] = process.argv.slice(2),
	browser = await launchBrowser(),
	shown = await browser.newPage({viewport: {width: 1280, height: 720}, colorScheme: "light"});
await shown.goto(`file://${path.resolve(page)}#${address}`);
await shown.waitForFunction(() => !document.body.classList.contains("waiting"));
// How long drawing took is of this machine alone.
await shown.evaluate(() => (document.getElementById("cost").hidden = true));
await shown.evaluate(() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done))));
await shown.screenshot({path: picture});
await browser.close();
