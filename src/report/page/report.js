/* report.js - starts the page of a report, whose data are embedded in the page. */
"use strict";

(function (A) {
    const data = document.getElementById("data");
    if (!data) return;
    const report = JSON.parse(data.textContent);
    A.page = new A.Page(document.getElementById("page"));
    A.page.update(report.runs.map(A.runFromJson));
})(Anytime);
