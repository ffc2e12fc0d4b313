/* report.js - starts the page of a report: its data stands in the page itself. */
"use strict";

(function (A) {
    const data = document.getElementById("data");
    if (!data) return;
    const report = JSON.parse(data.textContent);
    A.page = new A.Page(document.getElementById("page"));
    A.page.update(report.runs);
})(Anytime);
