// node draw.js FCAP: has fcap simulate write pages, runs their scripts on as much of a document as they use, and looks at what
// they drew.
"use strict";
const assert = require("node:assert");
const { execFileSync } = require("node:child_process");
const fs = require("node:fs");
const os = require("node:os");
const path = require("node:path");
const vm = require("node:vm");

class Element {
  constructor(tag) { Object.assign(this, { tag, attributes: {}, children: [], style: {}, before_: [], parent: null }); }
  setAttribute(name, value) { this.attributes[name] = String(value); }
  getAttribute(name) { return this.attributes[name] ?? null; }
  removeAttribute(name) { delete this.attributes[name]; }
  addEventListener(event, then) { assert.equal(event, "click"); this.click = then; }
  before(...nodes) { this.before_.push(...nodes); }
  append(...nodes) {
    for (const node of nodes) {
      if (node instanceof Element) {
        if (node.parent) node.parent.children = node.parent.children.filter(child => child !== node);
        node.parent = this;
      }
      this.children.push(node instanceof Element ? node : String(node));
    }
  }
  get text() { return this.children.map(child => child.text ?? child).join(""); }
  all(test) {
    const below = this.children.filter(child => child instanceof Element).flatMap(child => child.all(test));
    return test(this) ? [this, ...below] : below;
  }
  tags(tag) { return this.all(node => node.tag === tag); }
  classes(name) { return this.all(node => node.attributes.class === name); }
}

const directory = fs.mkdtempSync(path.join(os.tmpdir(), "fcap-page-"));
process.on("exit", () => fs.rmSync(directory, { recursive: true }));

function page(log, rules, ...options) {
  const file = name => path.join(directory, name);
  fs.writeFileSync(file("log.csv"), `user_id,campaign_id,timestamp\n${log.map(row => row.join(",") + "\n").join("")}`);
  fs.writeFileSync(file("rules.json"), JSON.stringify({ version: 7, rules }));
  execFileSync(process.argv[2], ["simulate", "--log", file("log.csv"), "--rules", file("rules.json"), "--html",
    file("page.html"), ...options], { stdio: ["ignore", "ignore", "inherit"] });
  const html = fs.readFileSync(file("page.html"), "utf8");
  const [report, script] = [...html.matchAll(/<script[^>]*>(.*?)<\/script>/gs)].map(found => found[1]);
  const notes = new Element("section");
  vm.runInNewContext(script, { document: {
    getElementById: id => ({ report: { textContent: report }, notes })[id],
    createElement: tag => new Element(tag),
    createElementNS: (space, tag) => new Element(tag)
  } });
  const body = new Element("body");
  body.append(...notes.before_, notes);
  return body;
}

const rows = table => table.tags("tbody")[0].tags("tr").map(row => row.children.map(cell => cell.text));
const tableOf = (body, heading) => body.tags("table").find(table => table.tags("th")[0].text === heading);
const start = 1_700_000_000, day = 86_400;
const cap = (id, limit) => ({ id, scope: "campaign", target: "*", limit, window: { kind: "sliding", length: "1h" } });

// One rule set, on the first and on the third day.
let body = page([["u1", "<b>", start], ["u1", "<b>", start + 1], ["u1", "<b>", start + 2], ["u2", "c2", start + 2 * day]],
  [cap("</script>", 2)], "--cpm", "500");
assert.match(body.text, /^The log: 4 impressions of 2 campaigns to 2 users, 14–16 November 2023 \(UTC\)\.Made on 20\d\d-/);
assert.deepEqual(body.classes("tile").map(tile => tile.text), ["25.00 %of the impressions lost", "3impressions shown",
  "100.00 %of the users still reached", "1.5impressions per user reached", "0.50worth of the impressions lost"]);
assert.deepEqual(body.classes("cost").map(cost => cost.text),
  ["</script> at most 2 impressions of each campaign in any 1 hour1 25.00 %"]);
const pairs = body.classes("pair").map(pair => pair.attributes.title);
assert.ok(pairs.includes("2023-11-15: 0 as logged, 0 with the rules"), pairs);
assert.ok(pairs.includes("users with 3 impressions: 1 as logged, 0 with the rules"), pairs);
assert.deepEqual(rows(tableOf(body, "Seen at least")), [["1+", "2", "2", "100.00 %"], ["2+", "1", "1", "50.00 %"],
  ["3+", "1", "0", "0.00 %"]]);
const campaigns = tableOf(body, "Campaign");
const busiest = ["<b>", "3", "2", "1", "33.33 %", "1", "1", "0.50"], other = ["c2", "1", "1", "0", "0.00 %", "1", "1", "0.00"];
assert.deepEqual(rows(campaigns), [busiest, other]);
const click = at => campaigns.tags("th")[at].click();
click(1);
assert.deepEqual(rows(campaigns), [busiest, other]);
click(1);
assert.deepEqual(rows(campaigns), [other, busiest]);
click(0);
assert.deepEqual(rows(campaigns), [busiest, other]);
assert.equal(campaigns.tags("th")[1].getAttribute("aria-sort"), null);

// A sweep.
body = page([["u1", "c1", start], ["u1", "c1", start + 1], ["u2", "c1", start]], [cap("r", 1)], "--sweep", "limit=1..3");
assert.deepEqual(body.tags("figcaption").map(title => title.text),
  ["Impressions lost", "Users reached (dashed: logged)", "Impressions per user (dashed: logged)"]);
assert.deepEqual(body.tags("circle").slice(0, 3).map(circle => circle.text),
  ["limit 1: 33.3 %", "limit 2: 0.0 %", "limit 3: 0.0 %"]);
assert.ok(!JSON.stringify(body.tags("polyline").map(line => line.attributes)).includes("NaN"));
assert.deepEqual(rows(tableOf(body, "Rules")).map(row => row.slice(0, 3)),
  [["as logged", "3", "0.00 %"], ["limit 1", "2", "33.33 %"], ["limit 2", "3", "0.00 %"], ["limit 3", "3", "0.00 %"]]);
assert.equal(body.tags("summary").filter(summary => summary.text === "In detail").length, 3);
