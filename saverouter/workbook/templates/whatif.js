"use strict";
// What if: the operating point, payback and bill as saverouter.judging computes them (Run.repriced(price).at(target, horizon)).
const NOISE = 1e-9;

// A finite number >= 0 as a whole multiple of 2 to the -1074, so that the division below is exact.
function exact(number) {
  const view = new DataView(new ArrayBuffer(8));
  view.setFloat64(0, number);
  const bits = view.getBigUint64(0), exponent = bits >> 52n, fraction = bits & ((1n << 52n) - 1n);
  return exponent ? (fraction | (1n << 52n)) << (exponent - 1n) : fraction;
}

function payback(supervision, reference, serving) {
  if (!(reference - serving > NOISE * reference)) return Infinity;
  const saved = exact(reference) - exact(serving);
  return Number((exact(supervision) + saved - 1n) / saved);
}

// The cheapest of [name, quality, cost] that is good enough; of two at one cost the better.
function cheapest(points, least) {
  const good = points.filter((point) => point[1] >= least - NOISE);
  return good.sort((a, b) => a[2] - b[2] || b[1] - a[1])[0];
}

function judge(work, router, volume, target, price) {
  const reference = price * work.cost, least = target * work.quality;
  const points = router.points.map(([policy, quality, cost, part]) => [policy, quality, cost + (price - 1) * part]);
  const models = work.models.map(([model, quality, cost]) => [model, quality, model === work.model ? price * cost : cost]);
  const supervision = router.supervision + (price - 1) * router.spent;
  const point = cheapest(points, least), alone = cheapest(models, least);
  return {
    policy: point && point[0],
    payback: point ? payback(supervision, reference, point[2]) : Infinity,
    best: volume * reference,
    bill: point ? supervision + volume * point[2] : Infinity,
    alone: alone && { model: alone[0], bill: volume * alone[2] },
  };
}

const digits = (number) => String(Number(number.toPrecision(3)));
const percent = (ratio) => digits(100 * ratio) + "%";

function short(number) {
  if (!Number.isFinite(number)) return "never";
  if (number >= 999500) return digits(number / 1e6) + "M";
  return number >= 999.5 ? digits(number / 1e3) + "K" : number.toFixed(0);
}

function time(days) {
  if (days < 1) return "less than a day";
  if (days < 60) return `about ${digits(days)} days`;
  return days < 730 ? `about ${digits(days / 30.4375)} months` : `about ${digits(days / 365.25)} years`;
}

function whatIf(works) {
  const form = document.getElementById("what-if"), control = form.elements;
  const say = (id, text) => { document.getElementById(id).textContent = text; };
  const choices = (select, names) => select.replaceChildren(...names.map((name, place) => new Option(name, place)));

  function routers() {
    const names = works[control.workload.value].routers.map((router) => router.name);
    const before = control.router.selectedOptions[0]?.text;
    choices(control.router, names);
    control.router.value = Math.max(0, names.indexOf(before));
  }

  function bar(id, name, bill, work, found) {
    const number = bill >= 999.5 ? short(bill) : digits(bill);
    const money = work.currency === "USD" ? `$${number}` : `${number} ${work.currency}`;
    const queries = `${short(bill / (found.best / control.volume.value))} ${work.model} queries`;
    say(`${id}-name`, name);
    say(`${id}-bill`, Number.isFinite(bill) ? `${percent(bill / found.best)} · ${work.currency ? money : queries}` : "does not reach the target");
    const longest = Math.max(...[found.best, found.bill].filter(Number.isFinite));
    document.getElementById(`${id}-bar`).style.width = `${Number.isFinite(bill) ? (100 * bill) / longest : 0}%`;
  }

  function show() {
    const work = works[control.workload.value], router = work.routers[control.router.value];
    const volume = Number(control.volume.value), target = control.target.value / 100, price = Number(control.price.value);
    say("target-shown", `${control.target.value}% of ${work.model}'s quality`);
    say("price-shown", `${digits(price)} × today's`);
    say("price-name", `Price of ${work.model}`);
    control.target.setAttribute("aria-valuetext", `${control.target.value} per cent`);
    control.price.setAttribute("aria-valuetext", `${digits(price)} times today's`);
    const valid = Number.isFinite(volume) && volume > 0;
    control.volume.setAttribute("aria-invalid", String(!valid));
    document.getElementById("bills").hidden = !valid;
    if (!valid) {
      say("payback", "–");
      say("payback-time", "");
      say("summary", "Give a yearly volume above zero.");
      return;
    }
    const found = judge(work, router, volume, target, price);
    say("payback", short(found.payback));
    say("payback-time", Number.isFinite(found.payback) ? time((365.25 * found.payback) / volume) : "");
    say("policy", found.policy ?? `none: its best is ${percent(router.peak / work.quality)} of ${work.model}'s quality`);
    bar("best", `${work.model} alone`, found.best, work, found);
    bar("routed", `${router.name}, supervision included`, found.bill, work, found);
    const other = found.alone && found.alone.model !== work.model;
    document.getElementById("alone").hidden = !other;
    if (other) bar("alone", `no router: ${found.alone.model}`, found.alone.bill, work, found);
    say("summary", summary(work, router, found));
  }

  function summary(work, router, found) {
    const alone = found.alone?.bill ?? found.best, saved = (bill) => percent(1 - bill / found.best);
    if (found.bill < alone) return `${router.name} has the lowest first-year bill: ${saved(found.bill)} less than ${work.model} alone.`;
    if (alone < found.best) return `No router needed: ${found.alone.model} meets the target for ${saved(alone)} less than ${work.model}.`;
    return `${work.model} alone has the lowest first-year bill.`;
  }

  choices(control.workload, works.map((work) => work.name));
  control.workload.addEventListener("change", routers);
  form.addEventListener("input", show);
  form.addEventListener("change", show);
  form.addEventListener("submit", (event) => event.preventDefault());
  routers();
  show();
  form.hidden = false;
}

// A tile opens by click, tap or Enter without any script; this adds the mouse that rests on it.
function hover(claim) {
  const tile = claim.querySelector("button"), words = claim.querySelector("[popover]");
  let waiting;
  const later = (act, delay) => (event) => {
    clearTimeout(waiting);
    if (event.pointerType === "mouse") waiting = setTimeout(act, delay);
  };
  claim.addEventListener("pointerenter", later(() => words.matches(":popover-open") || words.showPopover({ source: tile }), 120));
  claim.addEventListener("pointerleave", later(() => words.matches(":popover-open") && words.hidePopover(), 250));
}

const data = document.getElementById("frontiers");
if (data) whatIf(JSON.parse(data.textContent));
document.querySelectorAll(".claim").forEach(hover);
