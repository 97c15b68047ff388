#!/usr/bin/env python3
"""Writes data.json: what the servers of the tasks know. The same each time."""
import json, os, random
from datetime import date, datetime, timedelta, timezone

R = random.Random(60)
DAY = date(2026, 3, 1)
iso = lambda moment: moment.strftime("%Y-%m-%dT%H:%M:%SZ")
moment = lambda day, spread: datetime(day.year, day.month, day.day, tzinfo=timezone.utc) + timedelta(minutes=R.randrange(spread * 1440))

FIRST = "Ada Ben Chiara Dmitri Elif Farid Greta Hiro Inês Jonas Kira Léa Mona Nils Olga Pavel Quinn Rosa Sven Tara".split()
LAST = "Abreu Berg Costa Dahl Eriksen Fischer Gupta Hoang Ito Jensen Kaya Lindqvist Moreau Novak Okafor Pérez".split()
COUNTRIES = ["DE", "FR", "JP", "NO", "PT", "TR"]
CATEGORIES = {"tea": ["Assam", "Sencha", "Oolong", "Earl Grey", "Rooibos"], "cup": ["Mug", "Gaiwan", "Tumbler", "Teacup"],
              "tool": ["Kettle", "Strainer", "Scale", "Whisk", "Timer"]}

products = [{"sku": f"{category[:2].upper()}-{number:03}", "name": name, "category": category, "price": round(R.uniform(2, 80), 2), "stock": R.choice([0, 0, 3, 8, 25, 120]), "discontinued": R.random() < 0.15}
            for category, names in CATEGORIES.items() for number, name in enumerate(names, 1)]
customers = []
for number in range(1, 41):
    first, last = R.choice(FIRST), R.choice(LAST)
    manager = R.choice([None, {"name": R.choice(FIRST), "email": R.choice(["north", "south"]) + "@office.example"}])
    customers.append({"id": number, "name": f"{first} {last}", "email": f"{first[0]}.{last}@Example.{R.choice(['com', 'org', 'net'])}".lower() if number % 9 else None,
                      "country": R.choice(COUNTRIES), "tags": R.sample(["vip", "trial", "newsletter", "partner"], R.randrange(3)), "signed_up": str(DAY - timedelta(days=R.randrange(900))), "manager": manager})
orders = []
for number in range(1001, 1091):
    lines = [{"sku": product["sku"], "qty": R.randint(1, 6), "unit_price": product["price"]} for product in R.sample(products, R.randint(1, 4))]
    orders.append({"id": number, "customer_id": R.randint(1, 43), "status": R.choice(["open", "open", "paid", "shipped", "cancelled"]), "placed_at": iso(moment(DAY - timedelta(days=90), 90)), "lines": lines, "coupon": R.choice([None, None, "SPRING10", "WELCOME"])})
tickets = []
for number in range(1, 51):
    opened = moment(DAY - timedelta(days=60), 58)
    closed = opened + timedelta(minutes=R.randrange(30, 9000)) if R.random() < 0.6 else None
    zone = R.choice([0, 1, 2, -5])
    with_zone = (opened + timedelta(hours=zone)).strftime("%Y-%m-%dT%H:%M:%S") + f"{'-' if zone < 0 else '+'}{abs(zone):02}:00"
    tickets.append({"id": f"T-{number}", "customer_id": R.randint(1, 40), "subject": R.choice(["Refund for order #{}", "Order #{} never arrived", "Broken item in order #{}", "Question about tea"]).format(R.randint(1001, 1090)),
                    "state": "closed" if closed else "open", "priority": R.choice(["low", "normal", "high", "urgent"]), "opened": with_zone, "closed": iso(closed) if closed else None})
people = []
for number in range(1, 25):
    people.append({"id": number, "name": f"{R.choice(FIRST)} {R.choice(LAST)}", "dept": R.choice(["sales", "support", "ops"]), "salary": R.randrange(2800, 9000, 50), "started": str(DAY - timedelta(days=R.randrange(100, 4000))),
                   "boss": None if number == 1 else R.randrange(1, number), "skills": R.sample(["sql", "python", "excel", "french", "turkish", "welding"], R.randrange(4))})
leave = []
for number in range(30):
    start = DAY + timedelta(days=R.randrange(60))
    leave.append({"person_id": R.randint(1, 24), "from": str(start), "to": str(start + timedelta(days=R.randrange(12))), "kind": R.choice(["holiday", "holiday", "sick"])})
log = []
for number in range(120):
    at = datetime(2026, 3, 1, 8, 0, tzinfo=timezone.utc) + timedelta(seconds=37 * number + R.randrange(30))
    level = R.choice(["INFO", "INFO", "INFO", "WARN", "ERROR"])
    status = R.choice([200, 200, 200, 304, 404, 500])
    what = {"INFO": f"GET /items/{R.randint(1, 30)} {status} {R.randint(2, 900)}ms", "WARN": f"slow query took {R.randint(1000, 9000)}ms user=u{R.randint(1, 9)}",
            "ERROR": f"upstream {R.choice(['billing', 'search', 'auth'])} failed: code={R.choice(['E17', 'E42', 'E99'])} user=u{R.randint(1, 9)}"}[level]
    log.append(f"{iso(at)} [{level}] {what}")
csv = ["date;region;units;revenue"] + [f"{DAY - timedelta(days=R.randrange(120))};{R.choice(['north', 'south', 'west'])};{R.randint(1, 40)};{R.uniform(10, 900):.2f}" for _ in range(60)]
notes = """# Launch plan

Owner: Greta Dahl
- [x] book the hall (2026-02-14)
- [ ] print 250 flyers (2026-03-09)
- [ ] call sales@office.example
- [x] order tea, 12 boxes (2026-02-20)
- [ ] invite press@news.example and radio@news.example (2026-03-02)

## Budget
hall: 1200 EUR
flyers: 89.90 EUR
tea: 240.5 EUR
"""
ini = "[server]\nport = 8080\nhost = 127.0.0.1\n; the old one\ndebug = false\n\n[limits]\ncalls = 50\ntimeout = 10\n"
poem = "The tea is hot, the cup is blue,\nthe kettle sings a song for you.\nThe cup, the tea, the song, the sun:\na day is made, a day is done.\n"

text = lambda name, required: {"args": {name: "string"}, "required": [name] if required else []}
DATA = {
    "shop": {"tables": {"orders": orders, "products": products}, "tools": {
        "list_orders": {"description": "Orders, by status or customer_id", "rows": "orders", "args": {"status": "string", "customer_id": "integer"}},
        "page_orders": {"description": "Orders, 20 a page, pages from 1: {items, page, pages}", "rows": "orders", "page": 20, "args": {"page": "integer"}},
        "get_order": {"description": "One order", "one": "orders", "args": {"id": "integer"}, "required": ["id"]},
        "list_products": {"description": "All products as JSON text", "rows": "products", "args": {"category": "string"}, "as": "text"},
        "get_price": {"description": "One product with its price; fails for what is discontinued", "one": "products", "refuse": ["discontinued", True, "this product is discontinued"], **text("sku", True)}}},
    "crm": {"tables": {"customers": customers}, "tools": {
        "list_customers": {"description": "Customers, 15 at once: {items, next_cursor}; give cursor to go on", "rows": "customers", "page": 15, "args": {"cursor": "string"}},
        "get_customer": {"description": "One customer", "one": "customers", "args": {"id": "integer"}, "required": ["id"]},
        "find_customers": {"description": "Customers of a country", "rows": "customers", **text("country", True)}}},
    "desk": {"tables": {"tickets": tickets}, "tools": {
        "list_tickets": {"description": "Tickets, by state (open, closed) or priority", "rows": "tickets", "args": {"state": "string", "priority": "string"}},
        "get_ticket": {"description": "One ticket", "one": "tickets", **text("id", True)},
        "escalate": {"description": "Escalates an open ticket and gives it back", "one": "tickets", "refuse": ["state", "closed", "the ticket is closed"], "break": ["priority", "urgent", "escalation service crashed"], **text("id", True)}}},
    "hr": {"tables": {"people": people, "leave": leave}, "tools": {
        "list_people": {"description": "People, by dept", "rows": "people", **text("dept", False)},
        "get_person": {"description": "One person", "one": "people", "args": {"id": "integer"}, "required": ["id"]},
        "list_leave": {"description": "Absences, both days included, by kind (holiday, sick) or person_id", "rows": "leave", "args": {"kind": "string", "person_id": "integer"}}}},
    "files": {"tables": {"texts": {"server.log": "\n".join(log) + "\n", "sales.csv": "\n".join(csv) + "\n", "notes.md": notes, "config.ini": ini, "poem.txt": poem,
                                    "settings.json": json.dumps({"theme": "dark", "retries": 3, "regions": ["north", "south"], "owner": {"name": "Greta"}})}}, "tools": {
        "read": {"description": "The text of a file: server.log sales.csv notes.md config.ini poem.txt settings.json", "texts": "texts", **text("path", True)}}},
}
with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "data.json"), "w") as out:
    out.write(json.dumps(DATA, ensure_ascii=False).replace('}, {"', '},\n{"') + "\n")
