/** The participant's look: plain, large enough for a thumb, light and dark. */

export const STYLE = `
:host { display: block; color-scheme: light dark; font: 1rem/1.5 system-ui, sans-serif; color: light-dark(#1b1f24, #e8eaed); }
* { box-sizing: border-box; }
.card { max-width: 40rem; margin: 0 auto; padding: 1.25rem; background: light-dark(#fff, #1d2126); border: 1px solid light-dark(#d5dae0, #3a414a); border-radius: 12px; outline: none; }
h1, p, dd, li, label, legend { unicode-bidi: plaintext; }
h1 { font-size: 1.4rem; line-height: 1.25; margin: 0 0 .75rem; overflow-wrap: anywhere; }
h2 { font-size: 1.05rem; margin: 1.25rem 0 .25rem; }
p { margin: .5rem 0; overflow-wrap: anywhere; }
dl { margin: 0; display: grid; grid-template-columns: minmax(6rem, auto) 1fr; gap: .25rem 1rem; }
dt { color: light-dark(#57606a, #a3adb8); }
dd { margin: 0; overflow-wrap: anywhere; white-space: pre-line; }
form { margin: 1rem 0 0; }
label { display: block; margin: .75rem 0 .25rem; font-weight: 600; }
label.inline, label.choice { font-weight: 400; display: flex; gap: .5rem; align-items: flex-start; padding: .4rem 0; margin: 0; }
fieldset { border: 1px solid light-dark(#d5dae0, #3a414a); border-radius: 8px; margin: .75rem 0; }
legend { font-weight: 600; }
input { font: inherit; accent-color: #0b62c4; }
input[type="checkbox"], input[type="radio"] { inline-size: 1.35rem; block-size: 1.35rem; flex: none; margin: .1rem 0 0; }
input:not([type="checkbox"], [type="radio"], [type="range"]) { inline-size: 100%; padding: .6rem .7rem; border: 1px solid light-dark(#8c959f, #6b7682); border-radius: 8px; background: light-dark(#fff, #14171b); color: inherit; }
select { font: inherit; inline-size: 100%; padding: .6rem .7rem; border: 1px solid light-dark(#8c959f, #6b7682); border-radius: 8px; background: light-dark(#fff, #14171b); color: inherit; }
ul { margin: .25rem 0; padding-inline-start: 1.25rem; overflow-wrap: anywhere; }
input[type="range"] { inline-size: 100%; margin: .75rem 0 0; }
.with-unit { display: flex; gap: .6rem; align-items: center; }
.with-unit + .note, .with-unit + input + .note { margin-top: .4rem; }
.with-unit span { flex: none; max-inline-size: 45%; color: light-dark(#57606a, #a3adb8); overflow-wrap: anywhere; }
label.question, legend { font-size: 1.1rem; overflow-wrap: anywhere; }
.asked { margin: 1.25rem 0 -.5rem; }
.lines { white-space: pre-line; }
.repeated { font-size: 1.5rem; font-weight: 700; margin: 0 0 1rem; }
.language { display: flex; gap: .6rem; align-items: center; margin-top: 1.25rem; }
.language label { margin: 0; font-weight: 400; color: light-dark(#57606a, #a3adb8); font-size: .9rem; }
.language select { inline-size: auto; padding: .35rem .5rem; font-size: .9rem; }
[hidden] { display: none; }
.row { display: flex; flex-wrap: wrap; gap: .75rem; margin-top: 1rem; }
button { font: inherit; font-weight: 600; padding: .7rem 1.3rem; border-radius: 8px; border: 1px solid transparent; background: #0b5cad; color: #fff; cursor: pointer; }
button.plain { background: transparent; color: inherit; border-color: light-dark(#8c959f, #6b7682); }
button[disabled] { opacity: .5; cursor: not-allowed; }
:focus-visible { outline: 3px solid light-dark(#0b62c4, #7db8ff); outline-offset: 2px; }
.note, .small { color: light-dark(#57606a, #a3adb8); font-size: .9rem; }
svg { width: 100%; max-width: 22rem; height: auto; display: block; margin: .5rem 0; }
svg text { font: 11px system-ui, sans-serif; fill: light-dark(#57606a, #a3adb8); }
.bar { fill: #0072b2; }
.bar.other { fill: #d55e00; }
.status { font-size: 1.1rem; font-weight: 600; }
.problem { color: light-dark(#a40e26, #ff9492); font-weight: 600; }
.problem:empty { display: none; }
.code { display: block; font-size: .8rem; padding: .5rem .6rem; border-radius: 8px; background: light-dark(#f1f3f5, #14171b); overflow-wrap: anywhere; }
.bits { display: flex; flex-wrap: wrap; gap: 3px; margin: .5rem 0; }
.bits span { inline-size: 14px; block-size: 14px; border-radius: 3px; border: 1px solid light-dark(#8c959f, #6b7682); }
.bits .on { background: #0072b2; border-color: #0072b2; }
@media (max-width: 420px) { .card { border: 0; border-radius: 0; padding: 1rem; } dl { grid-template-columns: 1fr; } dt { margin-top: .4rem; } button { flex: 1; padding-inline: .5rem; } }
@media (prefers-reduced-motion: no-preference) { button { transition: opacity .15s; } }
`;
