#!/usr/bin/env python3
"""The tasks, and their answers computed without ptc: writes tasks.json.

Money is rounded half up to two decimals where the task says so; days and hours are in UTC unless it says otherwise."""
import json, os, re
from collections import Counter, defaultdict
from datetime import date, datetime, timedelta, timezone
from decimal import ROUND_HALF_UP, Decimal
from fractions import Fraction

HERE = os.path.dirname(os.path.abspath(__file__))
DATA = json.load(open(os.path.join(HERE, "data.json")))
table = lambda server, name: DATA[server]["tables"][name]
ORDERS, PRODUCTS, CUSTOMERS = table("shop", "orders"), table("shop", "products"), table("crm", "customers")
TICKETS, PEOPLE, LEAVE, TEXTS = table("desk", "tickets"), table("hr", "people"), table("hr", "leave"), table("files", "texts")
customer = {row["id"]: row for row in CUSTOMERS}
product = {row["sku"]: row for row in PRODUCTS}
person = {row["id"]: row for row in PEOPLE}
cents = lambda number: float(Decimal(repr(number)).quantize(Decimal("0.01"), ROUND_HALF_UP))
total = lambda order: sum(line["qty"] * line["unit_price"] for line in order["lines"])
at = lambda text: datetime.fromisoformat(text.replace("Z", "+00:00"))
day = date.fromisoformat
log = [re.match(r"(\S+) \[(\w+)\] (.*)", line).groups() for line in TEXTS["server.log"].splitlines()]
csv = [dict(zip(["date", "region", "units", "revenue"], line.split(";"))) for line in TEXTS["sales.csv"].splitlines()[1:]]
groups = lambda rows, key: {k: [row for row in rows if key(row) == k] for k in sorted({key(row) for row in rows})}
days = lambda leave: (day(leave["to"]) - day(leave["from"])).days + 1

TASKS = []


def task(text, answer):
    TASKS.append({"task": text, "answer": answer})


# Joins
task("shop/list_orders: the number of orders of each status, as a map.", Counter(o["status"] for o in ORDERS))
task("Revenue (qty times unit_price of all lines) of paid and shipped orders by customer country, rounded to two decimals; orders whose customer crm/get_customer does not know count as \"unknown\". A map.",
     (lambda sums: {k: cents(v) for k, v in sums.items()})((lambda d: [d.__setitem__(c, d.get(c, 0) + total(o)) for o in ORDERS if o["status"] in ("paid", "shipped") for c in [customer.get(o["customer_id"], {}).get("country", "unknown")]] and d)({})))
task("Ids of orders whose customer_id is not among the customers of crm (crm/list_customers has pages with a cursor), ascending.", sorted(o["id"] for o in ORDERS if o["customer_id"] not in customer))
task("Names of customers who have an open order and an open ticket (desk/list_tickets), without repetitions, sorted.",
     sorted({customer[i]["name"] for i in {o["customer_id"] for o in ORDERS if o["status"] == "open"} & {t["customer_id"] for t in TICKETS if t["state"] == "open"} if i in customer}))
task("The five skus of which most units were ordered in orders that are not cancelled: a list of [sku, units], most units first, equal ones by sku.",
     sorted(((s, sum(l["qty"] for o in ORDERS if o["status"] != "cancelled" for l in o["lines"] if l["sku"] == s)) for s in {l["sku"] for o in ORDERS if o["status"] != "cancelled" for l in o["lines"]}), key=lambda p: (-p[1], p[0]))[:5])
task("For the category \"cup\": a map from product name (shop/list_products) to the number of orders that have a line of it.", {p["name"]: sum(any(l["sku"] == p["sku"] for l in o["lines"]) for o in ORDERS) for p in PRODUCTS if p["category"] == "cup"})
task("Ids of open orders with a line of a product whose stock is less than the quantity of that line, ascending.", sorted({o["id"] for o in ORDERS if o["status"] == "open" for l in o["lines"] if product[l["sku"]]["stock"] < l["qty"]}))
task("Tickets whose subject names an order number: how many of them belong to the customer of that order (same customer_id), and how many do not? A map {same, other}; numbers without an order are left out.",
     (lambda same: {"same": sum(same), "other": len(same) - sum(same)})([t["customer_id"] == o["customer_id"] for t in TICKETS for n in re.findall(r"#(\d+)", t["subject"]) for o in ORDERS if o["id"] == int(n)]))
task("For each dept of hr: the number of holiday days of all its people (list_leave, both days included). A map.", {d: sum(days(l) for l in LEAVE if l["kind"] == "holiday" and person[l["person_id"]]["dept"] == d) for d in {person[l["person_id"]]["dept"] for l in LEAVE if l["kind"] == "holiday"}})
task("Names of people who are the boss of at least two people, with how many: a list of [name, count], most first, then by name.", sorted(([person[b]["name"], n] for b, n in Counter(p["boss"] for p in PEOPLE if p["boss"]).items() if n >= 2), key=lambda p: (-p[1], p[0])))
# Pages
task("The sum of all customer ids over all pages of crm/list_customers.", sum(customer))
task("shop/page_orders: how many pages are there, and how many orders on the last one? [pages, count]", [-(-len(ORDERS) // 20), len(ORDERS) % 20 or 20])
task("Using shop/page_orders only: ids of all orders with a coupon, ascending.", sorted(o["id"] for o in ORDERS if o["coupon"]))
task("The number of customers of each country (all pages), as a list of [country, count], most first, equal ones by country.", sorted(([c, n] for c, n in Counter(c["country"] for c in CUSTOMERS).items()), key=lambda p: (-p[1], p[0])))
task("Go through the pages of crm/list_customers only until the first customer with the tag \"vip\" whose country is \"JP\" (or the end): its id or null.", next((c["id"] for c in CUSTOMERS if "vip" in c["tags"] and c["country"] == "JP"), None))
task("The ids of the first order on every page of shop/page_orders, in page order, fetched in parallel once the number of pages is known.", [o["id"] for o in ORDERS[::20]])
task("Domains (after the @) of the e-mail addresses of all customers with how many there are of each, as a map; customers without an address are left out.", Counter(c["email"].split("@")[1] for c in CUSTOMERS if c["email"]))
task("Every tag with the ids of the customers that have it, ascending: a map.", {t: [c["id"] for c in CUSTOMERS if t in c["tags"]] for t in {t for c in CUSTOMERS for t in c["tags"]}})
# Dates
task("Number of orders by month of placed_at, a map from \"2026-01\" to a number.", Counter(o["placed_at"][:7] for o in ORDERS))
task("Number of orders by day of the week of placed_at (UTC), a map with keys as \"MONDAY\".", Counter(at(o["placed_at"]).strftime("%A").upper() for o in ORDERS))
task("Orders placed in the last seven days before 2026-03-01T00:00:00Z (at or after 2026-02-22T00:00:00Z): ids, ascending.", sorted(o["id"] for o in ORDERS if "2026-02-22" <= o["placed_at"] < "2026-03-01"))
task("Average hours from opened to closed of the closed tickets by priority, rounded to one decimal (half up): a map.",
     {p: int(sum(h) / len(h) * 10 + Fraction(1, 2)) / 10 for p, h in ((p, [Fraction(int((at(t["closed"]) - at(t["opened"])).total_seconds()), 3600) for t in TICKETS if t["closed"] and t["priority"] == p]) for p in {t["priority"] for t in TICKETS if t["closed"]})})
task("The ticket that was opened first (opened has different offsets; compare instants): its id.", min(TICKETS, key=lambda t: at(t["opened"]))["id"])
task("Dates (UTC, as \"2026-02-01\") on which at least two tickets were opened, ascending.", sorted(d for d, n in Counter(str(at(t["opened"]).astimezone(timezone.utc).date()) for t in TICKETS).items() if n >= 2))
task("Ids of people who on 2026-03-01 have been employed for at least five full years (started on or before 2021-03-01), ascending.", sorted(p["id"] for p in PEOPLE if p["started"] <= "2021-03-01"))
task("Who is absent on 2026-03-20 (list_leave, any kind)? Names, without repetitions, sorted.", sorted({person[l["person_id"]]["name"] for l in LEAVE if l["from"] <= "2026-03-20" <= l["to"]}))
task("The longest absence: [name, kind, days] (both days included); of equally long ones the one that begins first, then the smaller person_id.", (lambda l: [person[l["person_id"]]["name"], l["kind"], days(l)])(min(LEAVE, key=lambda l: (-days(l), l["from"], l["person_id"]))))
task("Median tenure in days on 2026-03-01 (days since started) of the dept \"support\"; of an even number the mean of the middle two.", (lambda s: s[len(s) // 2] if len(s) % 2 else (s[len(s) // 2 - 1] + s[len(s) // 2]) / 2)(sorted((date(2026, 3, 1) - day(p["started"])).days for p in PEOPLE if p["dept"] == "support")))
task("For each person with started in the year 2020 or later: a map from name to the date of the end of probation, 90 days after started.", {p["name"]: str(day(p["started"]) + timedelta(days=90)) for p in PEOPLE if p["started"] >= "2020"})
task("Working days (Monday to Friday) of absence of kind \"sick\" in all: a number.", sum((day(l["from"]) + timedelta(days=n)).weekday() < 5 for l in LEAVE if l["kind"] == "sick" for n in range(days(l))))
# Text
task("files/read server.log: number of lines by level, a map.", Counter(level for _, level, _ in log))
task("server.log: the number of ERROR lines by code (code=E17), as a list of [code, count], most first, then by code.", sorted(([c, n] for c, n in Counter(re.search(r"code=(\w+)", m)[1] for _, l, m in log if l == "ERROR").items()), key=lambda p: (-p[1], p[0])))
task("server.log: mean milliseconds of the GET requests with status 200, rounded to two decimals.", (lambda ms: cents(sum(ms) / len(ms)))([int(m.split()[3][:-2]) for _, l, m in log if l == "INFO" and m.split()[2] == "200"]))
task("server.log: the three slowest GET requests: a list of [path, milliseconds], slowest first, equal ones in the order of the file.", [[m.split()[1], int(m.split()[3][:-2])] for _, l, m in sorted((e for e in log if e[1] == "INFO"), key=lambda e: -int(e[2].split()[3][:-2]))[:3]])
task("server.log: users (user=u3) that have both a WARN and an ERROR line, sorted.", sorted({re.search(r"user=(\w+)", m)[1] for _, l, m in log if l == "WARN"} & {re.search(r"user=(\w+)", m)[1] for _, l, m in log if l == "ERROR"}))
task("server.log: the longest gap between two neighbouring lines, in seconds.", max(int((at(b[0]) - at(a[0])).total_seconds()) for a, b in zip(log, log[1:])))
task("sales.csv (columns date;region;units;revenue): revenue by region rounded to two decimals, a map.", {r: cents(sum(float(row["revenue"]) for row in rows)) for r, rows in groups(csv, lambda row: row["region"]).items()})
task("sales.csv: the row with the highest revenue per unit: a map with date, region, units (integer) and revenue (number).", (lambda r: {"date": r["date"], "region": r["region"], "units": int(r["units"]), "revenue": float(r["revenue"])})(max(csv, key=lambda r: float(r["revenue"]) / int(r["units"]))))
task("notes.md: the tasks that are not done (lines with \"- [ ]\") as texts without that mark, in order.", re.findall(r"- \[ \] (.*)", TEXTS["notes.md"]))
task("notes.md: all dates in brackets, as (2026-02-14), without the brackets, sorted.", sorted(re.findall(r"\((\d{4}-\d\d-\d\d)\)", TEXTS["notes.md"])))
task("notes.md: all e-mail addresses in the order of the text.", re.findall(r"[\w.]+@[\w.]+\w", TEXTS["notes.md"]))
task("notes.md: the sum of the budget (lines such as \"hall: 1200 EUR\") as a text with two decimals, \"1234.50\".", f"{sum(Decimal(n) for n in re.findall(r': ([0-9.]+) EUR', TEXTS['notes.md'])):.2f}")
task("config.ini as a map of sections, each a map from key to value; values of digits only are integers, true and false booleans, others texts; comments (;) are left out.", {"server": {"port": 8080, "host": "127.0.0.1", "debug": False}, "limits": {"calls": 50, "timeout": 10}})
task("poem.txt: how often each word of more than three letters occurs, without regard to case and punctuation: a map.", Counter(w for w in re.findall(r"[a-z]+", TEXTS["poem.txt"].lower()) if len(w) > 3))
task("poem.txt: each line's words in reverse order with only letters and blanks kept, as a list of texts.", [" ".join(re.findall(r"[A-Za-z]+", line)[::-1]) for line in TEXTS["poem.txt"].splitlines()])
task("settings.json: the same settings with retries one more, the region \"west\" added at the end and owner.name in capitals: the whole map.", {"theme": "dark", "retries": 4, "regions": ["north", "south", "west"], "owner": {"name": "GRETA"}})
task("Customers' names as initials with dots (\"Ada Berg\" is \"A.B.\"), how many customers have each, only those with at least two: a map.", {k: n for k, n in Counter("".join(w[0] + "." for w in c["name"].split()) for c in CUSTOMERS).items() if n >= 2})
task("One line of text a category of shop/list_products, sorted by category: \"cup: 4 products, mean 12.34\" with the mean price to two decimals (half up). A list of texts.", [f"{k}: {len(rows)} products, mean {Decimal(repr(sum(p['price'] for p in rows) / len(rows))).quantize(Decimal('0.01'), ROUND_HALF_UP)}" for k, rows in groups(PRODUCTS, lambda p: p["category"]).items()])
# Errors
task("shop/get_price for every sku of shop/list_products: a map {prices: map from sku to price, failed: list of the skus that failed, sorted}.", {"prices": {p["sku"]: p["price"] for p in PRODUCTS if not p["discontinued"]}, "failed": sorted(p["sku"] for p in PRODUCTS if p["discontinued"])})
task("crm/get_customer for the ids 38 to 43 in parallel: a list of the names in order, null where the customer is not found.", [customer[i]["name"] if i in customer else None for i in range(38, 44)])
task("desk/escalate every ticket with priority \"urgent\" or state \"closed\": how many calls failed for each :reason, as a map from reason to number.", Counter("upstream_error" if t["priority"] == "urgent" else "tool_error" for t in TICKETS if t["priority"] == "urgent" or t["state"] == "closed"))
task("Read the files poem.txt, missing.txt and notes.md: a map from path to the number of lines, or to the error's message where reading fails.", {"poem.txt": 4, "missing.txt": "no such file: missing.txt", "notes.md": len(TEXTS["notes.md"].splitlines())})
task("Escalate the tickets T-1 to T-12 in parallel; give {ok: ids that succeeded in order, messages: the distinct error messages, sorted}.",
     (lambda rows: {"ok": [t["id"] for t in rows if t["priority"] != "urgent" and t["state"] != "closed"], "messages": sorted({"escalation service crashed" if t["priority"] == "urgent" else "the ticket is closed" for t in rows if t["priority"] == "urgent" or t["state"] == "closed"})})(TICKETS[:12]))
task("Get order 1003 and then its customer; if either is not found answer \"missing\", else [customer's name, order total rounded to two decimals].", (lambda o: [customer[o["customer_id"]]["name"], cents(total(o))] if o["customer_id"] in customer else "missing")(ORDERS[2]))
# Numbers and shapes
task("hr: mean salary by dept rounded to two decimals, a map.", {d: cents(sum(p["salary"] for p in rows) / len(rows)) for d, rows in groups(PEOPLE, lambda p: p["dept"]).items()})
task("The share of all salaries that the three best paid people have, in percent with one decimal, as a text such as \"23.4%\".", f"{Decimal(repr(100 * sum(sorted((p['salary'] for p in PEOPLE), reverse=True)[:3]) / sum(p['salary'] for p in PEOPLE))).quantize(Decimal('0.1'), ROUND_HALF_UP)}%")
task("Histogram of order totals in steps of 100: a map from the lower bound as an integer (0, 100, …) to the number of orders.", {str(k): n for k, n in Counter(int(total(o) // 100) * 100 for o in ORDERS).items()})
task("hr/list_people: the chain of bosses of the person with id 24, as names from its boss to the top.", (lambda names: names)((lambda f: f(f, person[24]["boss"]))(lambda f, i: [person[i]["name"], *f(f, person[i]["boss"])] if i else [])))
task("For every order of customer 25: the order as it is with the key total added (rounded to two decimals) and without lines; a list by id.", [{**{k: v for k, v in o.items() if k != "lines"}, "total": cents(total(o))} for o in ORDERS if o["customer_id"] == 25])
task("Each skill with the names of the people who have it, sorted, only skills with at least four people; a list of {skill, people} sorted by skill.", [{"skill": s, "people": sorted(p["name"] for p in PEOPLE if s in p["skills"])} for s in sorted({s for p in PEOPLE for s in p["skills"]}) if sum(s in p["skills"] for p in PEOPLE) >= 4])

assert len(TASKS) == 60, len(TASKS)
with open(os.path.join(HERE, "tasks.json"), "w") as out:
    rows = ",\n".join(json.dumps(row, ensure_ascii=False) for row in TASKS)
    out.write(f"[\n{rows}\n]\n")
