#include "cli/simulate/page_style.h"

namespace fcap::cli {
namespace {

constexpr const char* kPageStyle = R"(
:root{color-scheme:light dark;--back:#fbfbf9;--card:#fff;--ink:#1d2430;--soft:#5c6675;--line:#d9dde3;
--before:#9aa5b4;--after:#0f6fb4;--shade:#0002}
@media (prefers-color-scheme:dark){:root{--back:#14181e;--card:#1c222b;--ink:#e7eaee;--soft:#a0aab8;
--line:#353d49;--before:#6b7686;--after:#58b0ee;--shade:#0008}}
*{box-sizing:border-box}
body{margin:0 auto;max-width:60rem;padding:2rem 1.2rem 4rem;background:var(--back);color:var(--ink);
font:16px/1.5 system-ui,"Segoe UI",Roboto,Helvetica,Arial,sans-serif}
h1{font-size:1.7rem;margin:0 0 .3rem}h2{font-size:1.25rem;margin:0 0 .6rem}h3{font-size:1rem;margin:1.6rem 0 .3rem}
.soft{color:var(--soft)}section{background:var(--card);border:1px solid var(--line);border-radius:10px;
padding:1.3rem 1.4rem;margin:1.4rem 0}
p{overflow-wrap:anywhere}.headline{font-size:1.1rem;margin:.2rem 0 1rem}
.tiles{display:flex;flex-wrap:wrap;gap:.8rem}.tile{flex:1 1 9rem;border:1px solid var(--line);border-radius:8px;padding:.6rem .8rem}
.tile b{display:block;font-size:1.45rem;font-variant-numeric:tabular-nums}
/* A shadow says that a table goes on beside the edge; the two that scroll with it hide it at its ends. */
.scroll{overflow-x:auto;background:linear-gradient(90deg,var(--card) 30%,transparent) 0 0/2rem 100% no-repeat local,
linear-gradient(270deg,var(--card) 30%,transparent) 100% 0/2rem 100% no-repeat local,
linear-gradient(90deg,var(--shade),transparent) 0 0/.5rem 100% no-repeat,
linear-gradient(270deg,var(--shade),transparent) 100% 0/.5rem 100% no-repeat}
table{border-collapse:collapse;width:100%;font-variant-numeric:tabular-nums}
th,td{text-align:right;padding:.35rem .6rem;border-bottom:1px solid var(--line);white-space:nowrap}
th:first-child,td:first-child{text-align:left}thead th{color:var(--soft);font-weight:600;white-space:normal;vertical-align:bottom}
svg{display:block;width:100%;height:auto}rect.after{fill:var(--after)}
.axis{stroke:var(--line)}text{font:12px system-ui,sans-serif;text-anchor:middle;fill:var(--soft)}
text.end{text-anchor:end;font-size:11px}text.value{fill:var(--ink);font-weight:600}
.curves{display:grid;grid-template-columns:repeat(auto-fit,minmax(15rem,1fr));gap:1rem;align-items:end}
figure{margin:0}figcaption{font-weight:600;font-size:.9rem}polyline{fill:none;stroke:var(--after);stroke-width:2}
circle{fill:var(--after)}.logged{stroke:var(--before);stroke-dasharray:4 4}
.pairs{display:grid;gap:.35rem;margin:.6rem 0}
.pair{display:grid;grid-template-columns:6.6rem minmax(0,1fr) 9.5rem;gap:.6rem;align-items:center;font-variant-numeric:tabular-nums}
.pair>span:first-child{text-align:right;color:var(--soft);white-space:nowrap}
.pair i{display:block;height:.55rem;border-radius:2px}.pair i+i{margin-top:2px}
.pair .before{background:var(--before)}.pair .after{background:var(--after)}
details{margin:1rem 0}summary{cursor:pointer;font-weight:600}
th button{all:unset;cursor:pointer}th button:focus-visible{outline:2px solid var(--after)}
th[aria-sort=ascending] button::after{content:" \25B2"}th[aria-sort=descending] button::after{content:" \25BC"}
td:first-child{overflow-wrap:anywhere;white-space:normal;min-width:7rem}
.legend{display:flex;gap:1.2rem;font-size:.9rem;color:var(--soft)}
.legend i{display:inline-block;width:.8rem;height:.8rem;border-radius:2px;margin-right:.4rem;vertical-align:-.05rem}
.legend .before{background:var(--before)}.legend .after{background:var(--after)}
.cost{display:grid;grid-template-columns:minmax(0,1fr) minmax(0,1fr) 9.5rem;gap:.8rem;align-items:center;
padding:.45rem 0;border-bottom:1px solid var(--line)}.cost svg{height:1rem}
.number .soft{margin-left:.5rem}.number{text-align:right;font-variant-numeric:tabular-nums}
@media (max-width:40rem){body{padding:1rem .7rem 3rem}section{padding:1rem .8rem}
.cost{grid-template-columns:1fr}.cost .number{text-align:left}
.pair{grid-template-columns:5.3rem minmax(0,1fr) 7.2rem;font-size:.85rem;gap:.4rem}
th,td{padding:.3rem .25rem;font-size:.8rem}td:first-child{min-width:4.5rem}}
@media print{body{max-width:none}section{break-inside:avoid}}
)";

// Sorts a table by the column that is clicked. Without it everything is readable as it is.
constexpr const char* kPageScript = R"(
document.querySelectorAll("table.sortable").forEach(table=>{
const heads=[...table.tHead.rows[0].cells],body=table.tBodies[0];
const value=(row,i)=>{const text=row.cells[i].textContent,number=parseFloat(text.replace(/[,%]/g,""));
return i>0&&!isNaN(number)?number:text};
heads.forEach((head,i)=>{const button=document.createElement("button");
button.type="button";button.textContent=head.textContent;head.replaceChildren(button);
button.onclick=()=>{const up=head.getAttribute("aria-sort")==="descending"||(i===0&&!head.hasAttribute("aria-sort"));
heads.forEach(h=>h.removeAttribute("aria-sort"));head.setAttribute("aria-sort",up?"ascending":"descending");
[...body.rows].sort((a,b)=>{const x=value(a,i),y=value(b,i);
const order=typeof x==="number"&&typeof y==="number"?x-y:String(x).localeCompare(String(y));
return up?order:-order}).forEach(row=>body.append(row))}})});
)";

}  // namespace

const char* page_style() noexcept {
  return kPageStyle;
}

const char* page_script() noexcept {
  return kPageScript;
}

}  // namespace fcap::cli
