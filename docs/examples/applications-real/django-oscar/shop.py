"""A shop of django-oscar with views for what its checkout and its shipping do, without pages and forms. All that they
call is public: OrderCreator, EventHandler, CheckoutSessionMixin. `shop.py tables` prints the statements that make the
tables; `shop.py PORT` serves."""

import sys

import django
import oscar
from django.conf import settings
from oscar import defaults

APPS = """address analytics basket catalogue catalogue.reviews checkout communication customer dashboard
dashboard.catalogue dashboard.communications dashboard.offers dashboard.orders dashboard.pages dashboard.partners
dashboard.ranges dashboard.reports dashboard.reviews dashboard.shipping dashboard.users dashboard.vouchers offer order
partner payment search shipping voucher wishlists"""
NAMES = {"reviews": "CatalogueReviews"}  # in oscar.apps.catalogue


def config(app: str) -> str:
    """The configuration of one of oscar's apps: oscar.apps.basket.apps.BasketConfig."""
    first, _, second = app.partition(".")
    name = first if not second else f"{second}_{first}" if first == "dashboard" else f"{first}_{second}"
    return f"oscar.apps.{app}.apps.{''.join(each.capitalize() for each in name.split('_'))}Config"


settings.configure(
    SECRET_KEY="none",
    ALLOWED_HOSTS=["*"],
    ROOT_URLCONF="shop",
    SITE_ID=1,
    STATIC_URL="/static/",
    USE_TZ=True,
    DEFAULT_AUTO_FIELD="django.db.models.AutoField",
    INSTALLED_APPS=[f"django.contrib.{each}" for each in ("auth", "contenttypes", "flatpages", "messages", "sessions")]
    + ["django.contrib.sites", "django_tables2", "haystack", "oscar.config.Shop", "treebeard", "widget_tweaks"]
    + [config(each) for each in APPS.split()],
    HAYSTACK_CONNECTIONS={"default": {"ENGINE": "haystack.backends.simple_backend.SimpleEngine"}},
    DATABASES={
        "default": {
            "ENGINE": "django.db.backends.postgresql",
            "NAME": "app",
            "USER": "app",
            "HOST": "127.0.0.1",
            "PORT": 5432,
            "ATOMIC_REQUESTS": True,  # as in oscar's own sandbox
            "CONN_MAX_AGE": None,
        }
    },
    **{name: getattr(defaults, name) for name in dir(defaults) if name.startswith("OSCAR")},
)
django.setup()
sys.modules["shop"] = sys.modules[__name__]

from django.apps import apps  # noqa: E402
from django.contrib.sites.models import Site  # noqa: E402
from django.core.wsgi import get_wsgi_application  # noqa: E402
from django.db import connection, transaction  # noqa: E402
from django.http import HttpResponse  # noqa: E402
from django.urls import path  # noqa: E402
from oscar.apps.checkout.calculators import OrderTotalCalculator  # noqa: E402
from oscar.apps.order.processing import EventHandler  # noqa: E402
from oscar.apps.order.utils import OrderCreator  # noqa: E402
from oscar.apps.partner.strategy import Selector  # noqa: E402
from oscar.apps.shipping.methods import NoShippingRequired  # noqa: E402
from oscar.core.loading import get_model  # noqa: E402

ORDERS = 6  # that were placed before, and can be shipped


def model(name: str):
    return get_model(*name.split("."))


def print_tables() -> None:
    with connection.schema_editor(collect_sql=True, atomic=False) as editor:
        for each in apps.get_models():
            if each._meta.managed and not each._meta.proxy and not each._meta.swapped:
                editor.create_model(each)
    print("\n".join(editor.collected_sql))


def fill() -> None:
    """Two products, ten of each in stock, and orders of one of the first."""
    Site.objects.create(id=1, domain="localhost", name="shop")
    kind = model("catalogue.ProductClass").objects.create(name="thing", requires_shipping=False, track_stock=True)
    partner = model("partner.Partner").objects.create(name="partner")
    for number in (1, 2):
        product = model("catalogue.Product").objects.create(title=f"thing {number}", product_class=kind, upc=number)
        model("partner.StockRecord").objects.create(
            product=product, partner=partner, partner_sku=number, price=1, num_in_stock=10
        )
    for _ in range(ORDERS):
        place_order([1])


def place_order(products: list[int]):
    basket = model("basket.Basket").objects.create()
    basket.strategy = Selector().strategy()
    for each in products:
        basket.add_product(model("catalogue.Product").objects.get(id=each))
    method = NoShippingRequired()
    charge = method.calculate(basket)
    total = OrderTotalCalculator().calculate(basket, charge)
    order = OrderCreator().place_order(basket, total, method, charge, user=None)
    basket.submit()
    return order


def buy(request, products: str) -> HttpResponse:
    order = place_order([int(each) for each in products.split("-")])
    return HttpResponse(order.number)


def ship(request, number: int) -> HttpResponse:
    """As oscar's documentation says: what is shipped leaves the stock."""
    order = model("order.Order").objects.order_by("id")[number - 1]
    EventHandler().consume_stock_allocations(order)
    return HttpResponse(order.number)


urlpatterns = [
    path("health", lambda request: HttpResponse(oscar.get_version())),
    path("buy/<str:products>", buy),
    path("ship/<int:number>", ship),
]

if __name__ == "__main__":
    if sys.argv[1] == "tables":
        print_tables()
    else:
        import waitress

        with transaction.atomic():
            if not Site.objects.exists():
                fill()
        connection.close()
        waitress.serve(get_wsgi_application(), host="127.0.0.1", port=sys.argv[1], threads=4)
