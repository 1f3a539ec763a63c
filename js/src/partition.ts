/** Partitions as they travel: cut points or split flags. Either form tiles the domain by construction. */

import { fields, integer, isRecord, list, refuse } from "./canonical.js";
import type { Attribute } from "./codes.js";

type Side = [number, number];

/** How the codes of one attribute may be cut. */
export interface Axis {
  size: number;
  nominal: boolean;
  missing: boolean;
}

/** A partition of the domain of some axes. */
export interface Partition {
  cells: number;
  /** The one cell that holds these codes. */
  cell(codes: readonly number[]): number;
}

export function axisOf(attribute: Attribute): Axis {
  return { size: attribute.size, nominal: attribute.kind === "nominal", missing: attribute.missing === "cell" };
}

/** The partition behind its canonical form, checked against the axes. */
export function partitionFrom(record: unknown, axes: readonly Axis[]): Partition {
  const form = isRecord(record) ? record["form"] : null;
  if (form === "grid") return grid(list(fields(record, "form cuts", "the partition")["cuts"], "cuts"), axes);
  if (form !== "tree") refuse("not a partition");
  const found = fields(record, "form fanout flags", "the partition");
  if (typeof found["flags"] !== "string" || !/^[01]+$/.test(found["flags"])) refuse("not a partition");
  return tree(integer(found["fanout"], "fanout", 2, 65536), found["flags"], axes);
}

function grid(given: unknown[], axes: readonly Axis[]): Partition {
  const cuts = given.map((c) => list(c, "cuts").map((x) => integer(x, "a cut", 1)));
  if (cuts.length !== axes.length) refuse("not a partition");
  cuts.forEach((c, i) => {
    if (c.some((cut, j) => cut >= (axes[i] as Axis).size || (j > 0 && (c[j - 1] as number) >= cut))) refuse("not a partition");
  });
  return {
    cells: cuts.reduce((n, c) => n * (c.length + 1), 1),
    cell: (codes) => cuts.reduce((at, c, i) => at * (c.length + 1) + c.filter((cut) => cut <= (codes[i] as number)).length, 0),
  };
}

function tree(fanout: number, flags: string, axes: readonly Axis[]): Partition {
  const queue: Side[][] = [axes.map((axis) => [0, axis.size])];
  const leaves: Side[][] = [];
  for (let i = 0; i < flags.length; i++) {
    const box = queue[i];
    if (!box) refuse("not a partition");
    if (flags[i] === "0") {
      leaves.push(box);
      continue;
    }
    if (box.every(([lo, hi]) => hi - lo === 1)) refuse("not a partition");
    const borders = box.map(([lo, hi], a) => parts(axes[a] as Axis, lo, hi, fanout));
    if (queue.length + borders.reduce((n, b) => n * (b.length - 1), 1) > flags.length) refuse("not a partition");
    queue.push(...product(borders));
  }
  if (queue.length !== flags.length) refuse("not a partition");
  return {
    cells: leaves.length,
    cell(codes) {
      let found = -1; // every cell is looked at, whatever the codes are
      leaves.forEach((box, i) => {
        if (box.every(([lo, hi], a) => lo <= (codes[a] as number) && (codes[a] as number) < hi)) found = i;
      });
      return found;
    },
  };
}

/** Where a side is cut: at most fanout parts as equal as possible; nominal codes part at once; the missing code apart. */
function parts(axis: Axis, lo: number, hi: number, fanout: number): number[] {
  if (axis.nominal) return Array.from({ length: hi - lo + 1 }, (_, i) => lo + i);
  const end = axis.missing && lo < axis.size - 1 && hi === axis.size ? axis.size - 1 : hi;
  const count = Math.min(fanout, end - lo);
  const borders = Array.from({ length: count + 1 }, (_, j) => lo + Math.floor((j * (end - lo)) / count));
  return end === hi ? borders : [...borders, hi];
}

function product(borders: number[][]): Side[][] {
  let boxes: Side[][] = [[]];
  for (const b of borders) boxes = boxes.flatMap((box) => b.slice(1).map((hi, i) => [...box, [b[i] as number, hi] as Side]));
  return boxes;
}
