// SPDX-License-Identifier: MIT
// The functions that hold the most in a file of node --heap-prof, which is made for a browser.
'use strict';
const fs = require('fs');
const rows = [];
(function add(node) {
  const { functionName, url, lineNumber } = node.callFrame;
  rows.push([node.selfSize, `${functionName || '(anonymous)'} ${url.split('/').pop()}:${lineNumber + 1}`]);
  node.children.forEach(add);
})(JSON.parse(fs.readFileSync(process.argv[2])).head);
rows.sort((a, b) => b[0] - a[0]);
for (const [size, name] of rows.slice(0, 10)) console.log(`${(size / 1024).toFixed(1).padStart(10)} KiB  ${name}`);
