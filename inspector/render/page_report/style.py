"""How the page looks: light and dark as the reader's system has it, and black on white on paper."""

STYLE = """
:root{color-scheme:light dark;--ground:#fff;--text:#1c2126;--soft:#5c6670;--line:#d9dee3;--card:#f6f8f9;
--error:#b3261e;--warning:#8a5a00;--notice:#1f5fa8;--info:#1d6b50;--accent:#1f6f83}
@media(prefers-color-scheme:dark){:root{--ground:#15191d;--text:#e6e9ec;--soft:#a5afb8;--line:#333b43;--card:#1d2328;
--error:#ff8a80;--warning:#f0b95a;--notice:#8ab8f0;--info:#6fcfab;--accent:#62b6c8}}
*{box-sizing:border-box}
body{margin:0;background:var(--ground);color:var(--text);font:15px/1.5 system-ui,sans-serif}
main{max-width:860px;margin:0 auto;padding:28px 24px 60px}
h1{font-size:1.55rem;margin:0 0 .2rem;overflow-wrap:anywhere}
h2{font-size:1.15rem;margin:2.1rem 0 .6rem;padding-top:.7rem;border-top:1px solid var(--line)}
h3{font-size:1rem;margin:1.2rem 0 .4rem}
p{margin:.35rem 0}
code,pre{font-family:ui-monospace,monospace;font-size:.87em;overflow-wrap:anywhere}
pre{background:var(--card);border:1px solid var(--line);border-radius:6px;padding:.7rem .85rem;overflow-x:auto;
white-space:pre-wrap}
.soft{color:var(--soft)}
.line{display:flex;flex-wrap:wrap;gap:.2rem 1.2rem;color:var(--soft)}
.answers{border:1px solid var(--line);border-radius:8px;padding:.35rem .95rem;margin:1rem 0}
.answer{display:grid;grid-template-columns:5rem 5rem 1fr;gap:.7rem;padding:.45rem 0;border-top:1px solid var(--line)}
.answer:first-child{border:0}
.answer span{overflow-wrap:anywhere}
.numbers{display:flex;flex-wrap:wrap;gap:.6rem 2rem;margin:.8rem 0}
.numbers b{display:block;font-size:1.2rem;font-variant-numeric:tabular-nums}
.finding{border-left:4px solid var(--tone);background:var(--card);padding:.5rem .85rem;margin:.55rem 0;
border-radius:0 6px 6px 0;break-inside:avoid;overflow-wrap:anywhere}
.tone{color:var(--tone);font-weight:650}
.error{--tone:var(--error)}.warning{--tone:var(--warning)}.notice{--tone:var(--notice)}.info{--tone:var(--info)}
.unknown{--tone:var(--soft)}
table{border-collapse:collapse;width:100%;font-size:.9rem;margin:.4rem 0}
th{white-space:nowrap;text-align:left;color:var(--soft);font-weight:600}
th,td{padding:.25rem .8rem .25rem 0;border-bottom:1px solid var(--line);vertical-align:top;overflow-wrap:anywhere}
table.facts td:first-child,td .tone{white-space:nowrap;color:var(--soft)}
td .tone{color:var(--tone)}
td:first-child:has(code){min-width:11rem}
td.number,th.number{text-align:right;font-variant-numeric:tabular-nums;white-space:nowrap}
.wide{overflow-x:auto}
details{margin:.4rem 0}
figure>.wide{overflow-x:auto}
summary{cursor:pointer;color:var(--accent)}
ul{margin:.3rem 0;padding-left:1.2rem}
svg,img{max-width:100%;height:auto}
svg{display:block;min-width:600px}
figure svg{width:100%}
figure{margin:1rem 0;break-inside:avoid}
figcaption{color:var(--soft);font-size:.9rem}
.maps{display:grid;grid-template-columns:repeat(auto-fill,minmax(300px,1fr));gap:1rem}
.maps img{width:100%}
@media(max-width:560px){.answer{grid-template-columns:1fr 1fr}.answer span:last-child{grid-column:1/-1}
main{padding:18px 14px}}
@media print,(min-width:700px){td:first-child:nth-last-child(2):has(code){min-width:20rem}}
@page{margin:16mm}
@media print{:root{color-scheme:light;--ground:#fff;--text:#000;--soft:#444;--line:#bbb;--card:#fff;
--error:#b3261e;--warning:#8a5a00;--notice:#1f5fa8;--info:#1d6b50;--accent:#000}
body{font-size:11pt;-webkit-print-color-adjust:exact;print-color-adjust:exact}
main{max-width:none;padding:0}
h2,h3{break-after:avoid}
tr,.answer,figure{break-inside:avoid}
td{overflow-wrap:normal}
td code,td:last-child{overflow-wrap:anywhere}
thead{display:table-header-group}
.sheet{break-before:page}
svg{min-width:0}
details.printed::details-content{content-visibility:visible;display:block;block-size:auto}
.screen{display:none}}
"""
