(function () {
  var data = JSON.parse(document.getElementById("data").textContent), rows = data.rows;
  var board = document.getElementById("board"), out = document.getElementById("readout");
  var hairs = board.querySelectorAll(".hair"), first = board.querySelector(".canvas");
  function two(n) { return (n < 10 ? "0" : "") + n; }
  function money(v) { return "$" + (v / 1000).toFixed(2); }
  function part(name, value, cls) {
    out.append(name + " ");
    var b = document.createElement("b");
    b.textContent = value;
    if (cls) b.className = cls;
    out.append(b);
  }
  function show(x) {
    var box = first.getBoundingClientRect();
    var f = Math.min(1, Math.max(0, (x - box.left) / box.width)), i = Math.round(f * (rows.length - 1)), r = rows[i];
    var m = (data.begins + i * data.step) % 1440;
    out.textContent = "";
    part("", two(Math.floor(m / 60)) + ":" + two(m % 60), "t");
    part("with consolidation", money(r[0]));
    part("never", money(r[1]));
    part("floor", money(r[2]));
    part("nodes", r[3] + " (" + r[4] + ")");
    part("pods", r[5] + (r[6] ? " + " + r[6] + " pending" : ""));
    hairs.forEach(function (h) { h.hidden = false; h.style.left = 100 * i / (rows.length - 1) + "%"; });
  }
  out.hidden = false;
  out.textContent = "Point at the curves to read them out.";
  board.addEventListener("pointermove", function (e) { if (e.target.closest(".canvas:not(.hours .canvas)")) show(e.clientX); });
  board.addEventListener("pointerdown", function (e) { if (e.target.closest(".canvas:not(.hours .canvas)")) show(e.clientX); });
})();
