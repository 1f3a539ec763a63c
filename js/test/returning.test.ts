/** The entry for a calendar: what programs for calendars read, and nothing about the person. */

import assert from "node:assert/strict";
import { test } from "node:test";
import { calendarEntry } from "../src/returning.js";

const LINK = `https://collector.example.org/c/${"0123456789abcdef".repeat(2)}`;

test("an entry starts after the round has closed", () => {
  const entry = calendarEntry("Pay, age; and\nmore", 1_800_000_000, LINK);
  assert.ok(entry.startsWith("BEGIN:VCALENDAR\r\nVERSION:2.0\r\n"));
  assert.ok(entry.endsWith("END:VEVENT\r\nEND:VCALENDAR\r\n"));
  assert.match(entry, /\r\nDTSTART:20270115T081000Z\r\n/u);
  assert.match(entry, /\r\nDTEND:20270115T082500Z\r\n/u);
  assert.match(entry, /\r\nSUMMARY:Pay\\, age\\; and more\r\n/u);
});

test("lines are short, and nothing is lost by that", () => {
  const title = "Löhne und Gehälter in Musterstadt ".repeat(5).trim();
  const entry = calendarEntry(title, 1_800_000_000, LINK);
  for (const line of entry.split("\r\n")) assert.ok(new TextEncoder().encode(line).length <= 75);
  const whole = entry.replaceAll("\r\n ", "");
  assert.ok(whole.includes(`SUMMARY:${title}`));
  assert.ok(whole.includes(`URL:${LINK}`));
});

test("it names no group, and two of them have nothing in common but what everybody gets", () => {
  const [one, other] = [1, 2].map(() => calendarEntry("Pay", 1_800_000_000, LINK).split("\r\n"));
  const differ = one!.filter((line, i) => line !== other![i] && !line.startsWith("DTSTAMP"));
  assert.equal(differ.length, 1);
  assert.ok(differ[0]!.startsWith("UID:"));
  assert.ok(!one!.join().includes("group"));
});
