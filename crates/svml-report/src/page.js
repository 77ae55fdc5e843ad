"use strict";
(function () {
  // Tables are sorted by a click on the head of a column, or by the enter key on it.
  document.querySelectorAll("table[data-sortable] thead th").forEach(function (head) {
    var button = document.createElement("button");
    button.type = "button";
    button.textContent = head.textContent;
    head.textContent = "";
    head.appendChild(button);
    button.addEventListener("click", function () {
      var table = head.closest("table"), body = table.tBodies[0];
      var column = Array.prototype.indexOf.call(head.parentNode.children, head);
      var up = head.getAttribute("aria-sort") !== "ascending";
      table.querySelectorAll("thead th").forEach(function (other) { other.removeAttribute("aria-sort"); });
      head.setAttribute("aria-sort", up ? "ascending" : "descending");
      var key = function (row) {
        var cell = row.cells[column];
        return cell.dataset.value === undefined ? cell.textContent : Number(cell.dataset.value);
      };
      Array.from(body.rows).sort(function (a, b) {
        var x = key(a), y = key(b), order = x < y ? -1 : x > y ? 1 : 0;
        return up ? order : -order;
      }).forEach(function (row) { body.appendChild(row); });
    });
  });

  // The threshold: what becomes of the rows if the class is predicted from this probability on.
  var holder = document.getElementById("threshold-data"), slider = document.getElementById("threshold");
  if (!holder || !slider) { return; }
  var data = JSON.parse(holder.textContent);
  var percent = function (part, whole) { return whole ? (100 * part / whole).toFixed(1) + " %" : "\u2013"; };
  var show = function () {
    var at = Number(slider.value), hit = data.hits[at], alarm = data.alarms[at];
    var missed = data.positives - hit, quiet = data.negatives - alarm, set = function (name, text) {
      document.getElementById("t-" + name).textContent = text;
    };
    set("value", (at / 100).toFixed(2));
    set("hit", hit); set("missed", missed); set("alarm", alarm); set("quiet", quiet);
    set("recall", percent(hit, data.positives));
    set("precision", percent(hit, hit + alarm));
    set("specificity", percent(quiet, data.negatives));
    set("error", percent(missed + alarm, data.positives + data.negatives));
    slider.setAttribute("aria-valuetext", "probability of at least " + (at / 100).toFixed(2));
  };
  slider.addEventListener("input", show);
  document.getElementById("threshold-box").hidden = false;
  show();
})();
