"""Phone numbers in E.164, and the country that a number belongs to.

A prefix that is in no country, such as satellites and premium services, gets no message.
"""

import re
from collections.abc import Mapping
from typing import Final

from gatehouse.accounts.errors import BadAccount

MAX_PHONE_LENGTH: Final = 16  # E.164: a plus sign and at most 15 digits
PHONE: Final = re.compile(r"\+[1-9][0-9]{6,14}", re.ASCII)
SEPARATORS: Final = str.maketrans("", "", " ()-./\u00a0\u2011")  # that people type between digits
MAX_TYPED_LENGTH: Final = 40  # characters of a typed number, separators included

# The longest prefix counts: in North America the area code names the country, and +7 is shared.
CALLING_CODES: Final[Mapping[str, str]] = {
    "AC": "247",
    "AD": "376",
    "AE": "971",
    "AF": "93",
    "AG": "1268",
    "AI": "1264",
    "AL": "355",
    "AM": "374",
    "AO": "244",
    "AR": "54",
    "AS": "1684",
    "AT": "43",
    "AU": "61",
    "AW": "297",
    "AZ": "994",
    "BA": "387",
    "BB": "1246",
    "BD": "880",
    "BE": "32",
    "BF": "226",
    "BG": "359",
    "BH": "973",
    "BI": "257",
    "BJ": "229",
    "BM": "1441",
    "BN": "673",
    "BO": "591",
    "BQ": "5993 5994 5997",
    "BR": "55",
    "BS": "1242",
    "BT": "975",
    "BW": "267",
    "BY": "375",
    "BZ": "501",
    "CA": "1204 1226 1236 1249 1250 1257 1263 1289 1306 1343 1354 1365 1367 1368 1382 1403 1416 1418 1428 1431 1437"
    " 1438 1450 1460 1468 1474 1506 1514 1519 1548 1579 1581 1584 1587 1604 1613 1639 1647 1672 1683 1705 1709 1742"
    " 1753 1778 1780 1782 1807 1819 1825 1867 1873 1879 1902 1905 1942",
    "CD": "243",
    "CF": "236",
    "CG": "242",
    "CH": "41",
    "CI": "225",
    "CK": "682",
    "CL": "56",
    "CM": "237",
    "CN": "86",
    "CO": "57",
    "CR": "506",
    "CU": "53",
    "CV": "238",
    "CW": "5999",
    "CY": "357",
    "CZ": "420",
    "DE": "49",
    "DJ": "253",
    "DK": "45",
    "DM": "1767",
    "DO": "1809 1829 1849",
    "DZ": "213",
    "EC": "593",
    "EE": "372",
    "EG": "20",
    "ER": "291",
    "ES": "34",
    "ET": "251",
    "FI": "358",
    "FJ": "679",
    "FK": "500",
    "FM": "691",
    "FO": "298",
    "FR": "33",
    "GA": "241",
    "GB": "44",
    "GD": "1473",
    "GE": "995",
    "GF": "594",
    "GG": "447781 447839 447911 441481",
    "GH": "233",
    "GI": "350",
    "GL": "299",
    "GM": "220",
    "GN": "224",
    "GP": "590",
    "GQ": "240",
    "GR": "30",
    "GT": "502",
    "GU": "1671",
    "GW": "245",
    "GY": "592",
    "HK": "852",
    "HN": "504",
    "HR": "385",
    "HT": "509",
    "HU": "36",
    "ID": "62",
    "IE": "353",
    "IL": "972",
    "IM": "447524 447624 447924 441624",
    "IN": "91",
    "IO": "246",
    "IQ": "964",
    "IR": "98",
    "IS": "354",
    "IT": "39",
    "JE": "447509 447700 447797 447829 447937 441534",
    "JM": "1658 1876",
    "JO": "962",
    "JP": "81",
    "KE": "254",
    "KG": "996",
    "KH": "855",
    "KI": "686",
    "KM": "269",
    "KN": "1869",
    "KP": "850",
    "KR": "82",
    "KW": "965",
    "KY": "1345",
    "KZ": "76 77",
    "LA": "856",
    "LB": "961",
    "LC": "1758",
    "LI": "423",
    "LK": "94",
    "LR": "231",
    "LS": "266",
    "LT": "370",
    "LU": "352",
    "LV": "371",
    "LY": "218",
    "MA": "212",
    "MC": "377",
    "MD": "373",
    "ME": "382",
    "MG": "261",
    "MH": "692",
    "MK": "389",
    "ML": "223",
    "MM": "95",
    "MN": "976",
    "MO": "853",
    "MP": "1670",
    "MQ": "596",
    "MR": "222",
    "MS": "1664",
    "MT": "356",
    "MU": "230",
    "MV": "960",
    "MW": "265",
    "MX": "52",
    "MY": "60",
    "MZ": "258",
    "NA": "264",
    "NC": "687",
    "NE": "227",
    "NF": "6723",
    "NG": "234",
    "NI": "505",
    "NL": "31",
    "NO": "47",
    "NP": "977",
    "NR": "674",
    "NU": "683",
    "NZ": "64",
    "OM": "968",
    "PA": "507",
    "PE": "51",
    "PF": "689",
    "PG": "675",
    "PH": "63",
    "PK": "92",
    "PL": "48",
    "PM": "508",
    "PR": "1787 1939",
    "PS": "970",
    "PT": "351",
    "PW": "680",
    "PY": "595",
    "QA": "974",
    "RE": "262",
    "RO": "40",
    "RS": "381",
    "RU": "7",
    "RW": "250",
    "SA": "966",
    "SB": "677",
    "SC": "248",
    "SD": "249",
    "SE": "46",
    "SG": "65",
    "SH": "290",
    "SI": "386",
    "SK": "421",
    "SL": "232",
    "SM": "378",
    "SN": "221",
    "SO": "252",
    "SR": "597",
    "SS": "211",
    "ST": "239",
    "SV": "503",
    "SX": "1721",
    "SY": "963",
    "SZ": "268",
    "TC": "1649",
    "TD": "235",
    "TG": "228",
    "TH": "66",
    "TJ": "992",
    "TK": "690",
    "TL": "670",
    "TM": "993",
    "TN": "216",
    "TO": "676",
    "TR": "90",
    "TT": "1868",
    "TV": "688",
    "TW": "886",
    "TZ": "255",
    "UA": "380",
    "UG": "256",
    "US": "1",
    "UY": "598",
    "UZ": "998",
    "VC": "1784",
    "VE": "58",
    "VG": "1284",
    "VI": "1340",
    "VN": "84",
    "VU": "678",
    "WF": "681",
    "WS": "685",
    "XK": "383",
    "YE": "967",
    "YT": "262269 262639",
    "ZA": "27",
    "ZM": "260",
    "ZW": "263",
}
# In North America outside of any country: premium, toll-free, personal and reserved numbers.
NO_COUNTRY: Final = (
    *("1500", "1521", "1522", "1523", "1524", "1525", "1526", "1527", "1528", "1529", "1532", "1533", "1535", "1538"),
    *("1542", "1543", "1544", "1545", "1546", "1547", "1549", "1550", "1552", "1553", "1554", "1556", "1566", "1569"),
    *("1577", "1578", "1588", "1589", "1600", "1622", "1633", "1644", "1655", "1677", "1688", "1700", "1710", "1800"),
    *("1822", "1833", "1844", "1855", "1866", "1877", "1880", "1881", "1882", "1883", "1884", "1885", "1886", "1887"),
    *("1888", "1889", "1900"),
    *("4470", "4476", "449", "7809", "7970"),  # personal and premium numbers of Great Britain and Russia
)
COUNTRY_OF_PREFIX: Final[Mapping[str, str]] = {
    **{prefix: country for country, prefixes in CALLING_CODES.items() for prefix in prefixes.split()},
    **dict.fromkeys(NO_COUNTRY, ""),
}
LONGEST_PREFIX: Final = max(map(len, COUNTRY_OF_PREFIX))
# A zero behind the calling code is dialed inside of the country only, except where numbers begin with one.
INNER_ZEROS: Final = re.compile(
    r"(\+(?>1|7|2[07]|3[0-469]|4[013-9]|5[1-8]|6[0-6]|8[1246]|9[0-58]|[2-9][0-9]{2}))0+", re.ASCII
)
BEGIN_WITH_ZERO: Final = frozenset({"BF", "BJ", "CG", "CI", "GA", "IT", "NE", "RW", "SM", "TJ", "VA"})


def check_phone(text: str) -> str:
    """Return a typed number in E.164, or nothing. Raises BadAccount.

    It begins with its country: a national number would mean another person in another country. Two spellings of one
    number, +49 151 and +49 (0)151, are one: a verified number has one owner.
    """
    number = text.translate(SEPARATORS) if len(text) <= MAX_TYPED_LENGTH else ""
    if number.startswith("00"):
        number = f"+{number[2:]}"
    if country_of(number) not in BEGIN_WITH_ZERO:
        number = INNER_ZEROS.sub(r"\1", number)
    if (text and not number) or (number and not PHONE.fullmatch(number)):
        raise BadAccount("must be a phone number with its country code, such as +49 151 23456789").on_screen("phone")
    return number


def country_of(number: str) -> str:
    """Return the country of a number in E.164, as two letters; empty for a number of no country."""
    digits = number.removeprefix("+")
    prefixes = (digits[:length] for length in range(min(LONGEST_PREFIX, len(digits)), 0, -1))
    return next((COUNTRY_OF_PREFIX[prefix] for prefix in prefixes if prefix in COUNTRY_OF_PREFIX), "")


def masked_phone(number: str) -> str:
    """Return what a page shows of a number before a sign-in is complete: the last three digits."""
    return f"… {number[-3:]}" if number else ""
