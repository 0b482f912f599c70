// node check.mjs OUT FILE.html…: opens each page as a browser would, from a
// local server, clicks what can be clicked, and writes pictures to OUT.
import { createServer } from 'node:http';
import { createRequire } from 'node:module';
import { mkdirSync, readFileSync } from 'node:fs';
import { basename } from 'node:path';
import { chromium } from 'playwright-core';

const axe = createRequire(import.meta.url).resolve('axe-core/axe.min.js');
const [out, ...files] = process.argv.slice(2);
mkdirSync(out, { recursive: true });
const server = createServer((request, response) => {
  const file = files.find((f) => '/' + basename(f) === request.url);
  response.writeHead(file ? 200 : 404, { 'Content-Type': 'text/html' });
  response.end(file ? readFileSync(file) : '');
});
await new Promise((ready) => server.listen(0, '127.0.0.1', ready));
const origin = `http://127.0.0.1:${server.address().port}`;
const browser = await chromium.launch({
  executablePath: process.env.CHROMIUM || '/usr/bin/chromium',
  args: ['--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run', '--disable-background-networking', '--disable-component-update', '--disable-sync'],
});
const faults = [];

for (const file of files) {
  const name = basename(file, '.html');
  const fault = (text) => faults.push(`${name}: ${text}`);
  for (const [view, options] of Object.entries({
    light: { colorScheme: 'light', viewport: { width: 1280, height: 900 } },
    dark: { colorScheme: 'dark', viewport: { width: 1280, height: 900 } },
    narrow: { colorScheme: 'light', viewport: { width: 390, height: 844 } },
  })) {
    // axe is injected past the page's own policy; the policy's effect is
    // checked by listening for requests.
    const context = await browser.newContext({ ...options, bypassCSP: true });
    const page = await context.newPage();
    page.on('console', (m) => ['error', 'warning'].includes(m.type()) && fault(`${view}: console ${m.type()}: ${m.text()}`));
    page.on('pageerror', (e) => fault(`${view}: ${e}`));
    page.on('request', (r) => r.url() !== `${origin}/${name}.html` && !r.url().startsWith('data:') && !r.url().endsWith('/favicon.ico') && fault(`${view}: it requests ${r.url()}`));
    const start = Date.now();
    await page.goto(`${origin}/${name}.html`);
    console.log(`${name} ${view}: open after ${Date.now() - start} ms, ${(readFileSync(file).length / 1e6).toFixed(2)} MB`);
    if (readFileSync(file).length > 2e6) fault('over 2 MB');
    for (const chart of await page.locator('.chart').all()) { // drawn when near
      await chart.scrollIntoViewIfNeeded();
      await chart.locator('svg').waitFor({ timeout: 10000 });
    }
    const closed = page.locator('details:not([open]) > summary');
    while (await closed.count()) await closed.first().click();
    const wide = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
    if (wide > 0) fault(`${view}: ${wide} px wider than the window`);
    await page.addScriptTag({ path: axe });
    const found = await page.evaluate(() => axe.run());
    for (const v of found.violations) fault(`${view}: axe ${v.id}: ${v.help}: ${v.nodes.slice(0, 2).map((n) => n.target).join(' ')}`);
    if (view === 'light' && await page.locator('.chart').count()) {
      const chart = page.locator('.chart.sizes').first();
      if (await chart.count()) {
        const before = await chart.innerHTML();
        await page.locator('.show input[value=time]').first().check();
        if (await chart.innerHTML() === before) fault('choosing time changes nothing');
        await page.locator('.show input[value=bus]').first().check();
        const select = page.locator('select').first();
        if (await select.locator('option').count() > 1) {
          const box = page.locator('.chart.dist').first();
          const had = await box.innerHTML();
          await select.selectOption({ index: 0 });
          if (await box.innerHTML() === had) fault('choosing a size changes nothing');
        }
        const dot = chart.locator('path[transform*=matrix]').last();
        await chart.scrollIntoViewIfNeeded();
        const place = await dot.boundingBox();
        if (place) await page.mouse.move(place.x + place.width / 2, place.y + place.height / 2);
        await page.waitForTimeout(200);
        if (!/GB\/s/.test(await chart.innerText())) fault('no value under the pointer');
        await page.mouse.move(0, 0);
      }
      await page.keyboard.press('Tab');
      await page.pdf({ path: `${out}/${name}-print.pdf`, format: 'A4' });
      await page.locator('.theme input[value=dark]').check();
      const dark = await page.evaluate(() => getComputedStyle(document.body).backgroundColor);
      await page.locator('.theme input[value=light]').check();
      if (await page.evaluate(() => getComputedStyle(document.body).backgroundColor) === dark) fault('the choice of colours changes nothing');
    }
    await page.evaluate(() => scrollTo(0, 0));
    await page.screenshot({ path: `${out}/${name}-${view}.png`, fullPage: true });
    await context.close();
  }
}
await browser.close();
server.close();
for (const f of faults) console.error(f);
process.exit(faults.length ? 1 : 0);
