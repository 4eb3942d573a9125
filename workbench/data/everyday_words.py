"""The words of the everyday corpus, besides those of the phrasebook.

The tables are read by ``workbench.data.everyday``; their columns are those of
``workbench.data.phrasebook``. An English plural that is not regular stands behind a
stroke.
"""

# More kinds of nouns than in the phrasebook: trade (what somebody works as), body,
# nature, idea; at, a place that one is at; into and zu, how German says "to the …";
# single, what has the same form for one and for many in English.
NOUNS = """
mother | Mutter f Mütter | person
father | Vater m Väter | person
brother | Bruder m Brüder | person
sister | Schwester f Schwestern | person
son | Sohn m Söhne | child
daughter | Tochter f Töchter | child
baby | Baby n Babys | child
friend | Freund m Freunde | person
cousin | Cousin m Cousins | person
husband | Ehemann m Ehemänner | person
wife/wives | Ehefrau f Ehefrauen | person
lady | Dame f Damen | person
person/people | Mensch* m Menschen | person
neighbor | Nachbar* m Nachbarn | person
guest | Gast m Gäste | person
boss | Chef m Chefs | person
teacher | Lehrer m Lehrer | person trade
student | Student* m Studenten | person trade
pupil | Schüler m Schüler | person trade
doctor | Arzt m Ärzte | person trade
police officer | Polizist* m Polizisten | person trade
farmer | Bauer* m Bauern | person trade
baker | Bäcker m Bäcker | person trade
driver | Fahrer m Fahrer | person trade
waiter | Kellner m Kellner | person trade
singer | Sänger m Sänger | person trade
dancer | Tänzer m Tänzer | person trade
artist | Künstler m Künstler | person trade
writer | Schriftsteller m Schriftsteller | person trade
actor | Schauspieler m Schauspieler | person trade
soldier | Soldat* m Soldaten | person trade
lawyer | Anwalt m Anwälte | person trade
scientist | Wissenschaftler m Wissenschaftler | person trade
engineer | Ingenieur m Ingenieure | person trade
pilot | Pilot* m Piloten | person trade
tourist | Tourist* m Touristen | person
player | Spieler m Spieler | person
thief/thieves | Dieb m Diebe | person
pirate | Pirat* m Piraten | person
hero | Held* m Helden | person
witch | Hexe f Hexen | person
wizard | Zauberer m Zauberer | person
knight | Ritter m Ritter | person
giant | Riese* m Riesen | person
ghost | Geist m Geister | person
robot | Roboter m Roboter | person
elephant | Elefant* m Elefanten | animal
tiger | Tiger m Tiger | animal
wolf/wolves | Wolf m Wölfe | animal
rabbit | Kaninchen n Kaninchen | animal
fish | Fisch m - | animal food single
goat | Ziege f Ziegen | animal
chicken | Huhn n Hühner | animal
monkey | Affe* m Affen | animal
snake | Schlange f Schlangen | animal
frog | Frosch m Frösche | animal
spider | Spinne f Spinnen | animal
bee | Biene f Bienen | animal
butterfly | Schmetterling m Schmetterlinge | animal
ant | Ameise f Ameisen | animal
donkey | Esel m Esel | animal
camel | Kamel n Kamele | animal
penguin | Pinguin m Pinguine | animal
owl | Eule f Eulen | animal
eagle | Adler m Adler | animal
squirrel | Eichhörnchen n Eichhörnchen | animal
hedgehog | Igel m Igel | animal
turtle | Schildkröte f Schildkröten | animal
crocodile | Krokodil n Krokodile | animal
giraffe | Giraffe f Giraffen | animal
zebra | Zebra n Zebras | animal
whale | Wal m Wale | animal
shark | Hai m Haie | animal
dolphin | Delfin m Delfine | animal
dragon | Drache* m Drachen | animal
unicorn | Einhorn n Einhörner | animal
puppy | Welpe* m Welpen | animal
kitten | Kätzchen n Kätzchen | animal
parrot | Papagei m Papageien | animal
rat | Ratte f Ratten | animal
animal | Tier n Tiere | animal
bread | Brot n - | food
butter | Butter f - | food
cheese | Käse m - | food
meat | Fleisch n - | food
rice | Reis m - | food
chocolate | Schokolade f - | food
sugar | Zucker m - | food
salt | Salz n - | food
honey | Honig m - | food
jam | Marmelade f - | food
ice cream | Eis n - | food
breakfast | Frühstück n - | food
dinner | Abendessen n - | food
soup | Suppe f Suppen | food
salad | Salat m Salate | food
cake | Kuchen m Kuchen | food
pizza | Pizza f Pizzas | food
sausage | Wurst f Würste | food
potato | Kartoffel f Kartoffeln | food
carrot | Karotte f Karotten | food
onion | Zwiebel f Zwiebeln | food
cucumber | Gurke f Gurken | food
noodle | Nudel f Nudeln | food
bean | Bohne f Bohnen | food
pancake | Pfannkuchen m Pfannkuchen | food
cookie | Keks m Kekse | food
banana | Banane f Bananen | fruit
grape | Traube f Trauben | fruit
pineapple | Ananas f Ananas | fruit
wine | Wein m - | drink
beer | Bier n - | drink
juice | Saft m - | drink
lemonade | Limonade f - | drink
phone | Telefon n Telefone | thing
computer | Computer m Computer | thing
television | Fernseher m Fernseher | thing
radio/radios | Radio n Radios | thing
camera | Kamera f Kameras | thing
clock | Uhr f Uhren | thing
watch | Armbanduhr f Armbanduhren | thing
key | Schlüssel m Schlüssel | thing
knife/knives | Messer n Messer | thing
fork | Gabel f Gabeln | thing
spoon | Löffel m Löffel | thing
plate | Teller m Teller | thing
bottle | Flasche f Flaschen | thing
pot | Topf m Töpfe | thing
box | Kiste f Kisten | thing in on behind beside
basket | Korb m Körbe | thing in
mirror | Spiegel m Spiegel | thing
pillow | Kissen n Kissen | thing
blanket | Decke f Decken | thing under
candle | Kerze f Kerzen | thing
doll | Puppe f Puppen | thing
game | Spiel n Spiele | thing
guitar | Gitarre f Gitarren | thing
piano/pianos | Klavier n Klaviere | thing
flower | Blume f Blumen | thing
rose | Rose f Rosen | thing
plant | Pflanze f Pflanzen | thing
stone | Stein m Steine | thing on under
stick | Stock m Stöcke | thing
ring | Ring m Ringe | thing
coin | Münze f Münzen | thing
money | Geld n - | thing
gift | Geschenk n Geschenke | thing
ticket | Fahrkarte f Fahrkarten | thing
map | Landkarte f Landkarten | thing
suitcase | Koffer m Koffer | thing in
backpack | Rucksack m Rucksäcke | thing in
pen | Stift m Stifte | thing
pencil | Bleistift m Bleistifte | thing
paper | Papier n - | thing
train | Zug m Züge | thing in
bus | Bus m Busse | thing in
ship | Schiff n Schiffe | thing on
boat | Boot n Boote | thing in
plane | Flugzeug n Flugzeuge | thing in
truck | Lastwagen m Lastwagen | thing
motorcycle | Motorrad n Motorräder | thing
taxi/taxis | Taxi n Taxis | thing in
hammer | Hammer m Hämmer | thing
rope | Seil n Seile | thing
ladder | Leiter f Leitern | thing
broom | Besen m Besen | thing
bucket | Eimer m Eimer | thing in
towel | Handtuch n Handtücher | thing
sword | Schwert n Schwerter | thing
crown | Krone f Kronen | thing
flag | Fahne f Fahnen | thing
photo/photos | Foto n Fotos | thing
machine | Maschine f Maschinen | thing
window | Fenster n Fenster | thing at under before
sofa | Sofa n Sofas | thing on behind under
oven | Ofen m Öfen | thing in
fridge | Kühlschrank m Kühlschränke | thing in
cupboard | Schrank m Schränke | thing in behind
shelf/shelves | Regal n Regale | thing on
desk | Schreibtisch m Schreibtische | thing on under
carpet | Teppich m Teppiche | thing on
shirt | Hemd n Hemden | clothes
dress | Kleid n Kleider | clothes
jacket | Jacke f Jacken | clothes
sweater | Pullover m Pullover | clothes
skirt | Rock m Röcke | clothes
sock | Socke f Socken | clothes
boot | Stiefel m Stiefel | clothes
scarf/scarves | Schal m Schals | clothes
tie | Krawatte f Krawatten | clothes
cap | Mütze f Mützen | clothes
belt | Gürtel m Gürtel | clothes
newspaper | Zeitung f Zeitungen | text
story | Geschichte f Geschichten | text
song | Lied n Lieder | text
message | Nachricht f Nachrichten | text
word | Wort n Wörter | text
sentence | Satz m Sätze | text
question | Frage f Fragen | text
answer | Antwort f Antworten | text
language | Sprache f Sprachen | text
fairy tale | Märchen n Märchen | text
movie | Film m Filme | text
head | Kopf m Köpfe | body
hand | Hand f Hände | body
foot/feet | Fuß m Füße | body
eye | Auge n Augen | body
ear | Ohr n Ohren | body
nose | Nase f Nasen | body
mouth | Mund m Münder | body
arm | Arm m Arme | body
leg | Bein n Beine | body
finger | Finger m Finger | body
tooth/teeth | Zahn m Zähne | body
face | Gesicht n Gesichter | body
sun | Sonne f Sonnen | nature
moon | Mond m Monde | nature
star | Stern m Sterne | nature
sky | Himmel m - | nature
cloud | Wolke f Wolken | nature
rain | Regen m - | nature
snow | Schnee m - | nature in
wind | Wind m Winde | nature
fire | Feuer n Feuer | nature
leaf/leaves | Blatt n Blätter | nature
world | Welt f Welten | nature
sea | Meer n Meere | nature in at
lake | See m Seen | nature in at zu
river | Fluss m Flüsse | nature in at zu
mountain | Berg m Berge | nature on behind
beach | Strand m Strände | nature at zu
island | Insel f Inseln | nature on
city | Stadt f Städte | in into
village | Dorf n Dörfer | in into
street | Straße f Straßen | on
station | Bahnhof m Bahnhöfe | at before zu
airport | Flughafen m Flughäfen | at zu
hospital | Krankenhaus n Krankenhäuser | in into before
hotel | Hotel n Hotels | in into before
restaurant | Restaurant n Restaurants | in into before
shop | Geschäft n Geschäfte | in into before
supermarket | Supermarkt m Supermärkte | in into behind
market | Markt m Märkte | on zu
church | Kirche f Kirchen | in into before
museum | Museum n Museen | in into before
theater | Theater n Theater | in into
cinema | Kino n Kinos | in into
library | Bibliothek f Bibliotheken | in into
zoo/zoos | Zoo m Zoos | in into
office | Büro n Büros | in into
university | Universität f Universitäten | at zu
bathroom | Badezimmer n Badezimmer | in into
bedroom | Schlafzimmer n Schlafzimmer | in into
living room | Wohnzimmer n Wohnzimmer | in into
cellar | Keller m Keller | in into
roof | Dach n Dächer | on under
wall | Mauer f Mauern | on behind beside
floor | Boden m Böden | on
farm | Bauernhof m Bauernhöfe | on
field | Feld n Felder | on
tower | Turm m Türme | in before beside
pharmacy | Apotheke f Apotheken | in into before
bakery | Bäckerei f Bäckereien | in into before
toilet | Toilette f Toiletten | on
idea | Idee f Ideen | idea
problem | Problem n Probleme | idea
dream | Traum m Träume | idea
color | Farbe f Farben | idea
number | Zahl f Zahlen | idea
day | Tag m Tage | idea
night | Nacht f Nächte | idea
week | Woche f Wochen | idea
year | Jahr n Jahre | idea
hour | Stunde f Stunden | idea
birthday | Geburtstag m Geburtstage | idea
party | Party f Partys | idea
family | Familie f Familien | idea
class | Klasse f Klassen | idea
time | Zeit f - | idea
luck | Glück n - | idea
music | Musik f - | idea
weather | Wetter n - | idea
"""
# Where the places of the phrasebook are gone to
WAYS = {
    "garden": "into",
    "kitchen": "into",
    "park": "into",
    "forest": "into",
    "room": "into",
    "school": "zu",
    "house": "into",
    "castle": "zu",
    "door": "zu",
    "tree": "zu",
    "table": "zu",
    "bridge": "zu",
}
FEMININE = {"Arzt": "Ärztin", "Anwalt": "Anwältin", "Bauer": "Bäuerin"}

# alone: the object may be left out; motion: also with "to the …"
VERBS = """
have | haben habe hast hat | food drink animal person child thing clothes text | general
want | wollen will willst will | food drink animal thing clothes text | general
would like | wollen möchte möchtest möchte | food drink thing | general
cook | kochen | food | alone
bake | backen | food | alone
cut | schneiden | fruit food thing
open | öffnen öffne öffnest öffnet | thing text
close | schließen | thing text
clean | putzen | thing clothes place
paint | malen | animal thing nature place | alone
repair | reparieren | thing
build | bauen | thing place
lose | verlieren | thing clothes
forget | vergessen vergesse vergisst vergisst | thing text idea
take | nehmen nehme nimmst nimmt | fruit food drink thing clothes text
throw | werfen werfe wirfst wirft | thing fruit
catch | fangen fange fängst fängt | animal thing
hold | halten halte hältst hält | animal thing body
pull | ziehen | thing animal
push | schieben | thing
wear | tragen trage trägst trägt | clothes
use | benutzen | thing
count | zählen | animal thing nature
collect | sammeln sammle sammelst sammelt | thing fruit
hide | verstecken | thing fruit animal
steal | stehlen stehle stiehlst stiehlt | thing clothes food
pay | bezahlen | person trade | alone
ask | fragen | person child
answer | antworten | person child | dative alone
meet | treffen treffe triffst trifft | person child
hug | umarmen | person child animal
kiss | küssen | person child animal
follow | folgen | person child animal | dative
hate | hassen | animal person food thing | general
understand | verstehen | person text | general alone
learn | lernen | text | alone
teach | unterrichten | person child | alone
miss | vermissen | person child animal | general
wake | wecken | person child animal
save | retten | person child animal
protect | beschützen | person child animal thing
watch | beobachten | animal person child nature
taste | probieren | food drink fruit
order | bestellen | food drink
choose | wählen | thing clothes text food
win | gewinnen | thing | alone
ride | reiten | animal | alone
believe | glauben | person child | dative general
bite | beißen | person animal
trust | vertrauen | person child | dative general
look at | an-sehen sehe siehst sieht | animal person thing nature text
listen to | zu-hören | person child | dative
pick up | ab-holen | person child
turn on | ein-schalten | thing
send | schicken | thing text clothes | gift
tell | erzählen | text | gift
live | wohnen | | place
stay | bleiben | | place animals
lie | liegen | | place animals
swim | schwimmen | | place animals
jump | springen | | place animals
cry | weinen | | place animals
smile | lächeln lächle lächelst lächelt | | place
shout | schreien | | place
dream | träumen | | place animals
cough | husten | | place
rest | ruhen | | place animals
go | gehen | | motion animals
walk | gehen | | motion animals
come | kommen | | motion animals
run | laufen laufe läufst läuft | | motion animals
drive | fahren fahre fährst fährt | | motion
fly | fliegen | | motion animals
travel | reisen | | motion
get up | auf-stehen | | plain
wake up | auf-wachen | | plain animals
fall asleep | ein-schlafen schlafe schläfst schläft | | plain animals
arrive | an-kommen | | plain
fall | fallen falle fällst fällt | | plain animals
die | sterben sterbe stirbst stirbt | | plain animals
bark | bellen | | plain animals
think | denken | | plain
"""
ALONE = ("eat", "drink", "read", "write", "draw", "wash", "help", "sell", "see", "hear")

# What is irregular; the verbs of the phrasebook are here, too.
ENGLISH_PAST = """
buy bought, sell sold, eat ate, drink drank, see saw, find found, read read,
write wrote, draw drew, hear heard, feed fed, give gave, show showed, bring brought,
sleep slept, sit sat, stand stood, sing sang, know knew, have had, cut cut, build built,
lose lost, forget forgot, take took, throw threw, catch caught, hold held, wear wore,
hide hid, steal stole, pay paid, meet met, understand understood, teach taught,
wake woke, choose chose, win won, ride rode, bite bit, send sent, tell told, lie lay,
swim swam, go went, come came, run ran, drive drove, fly flew, get got, fall fell,
think thought, hug hugged, speak spoke
"""
DOUBLED = ("sit", "cut", "forget", "hug", "win", "swim", "run", "get")  # sitting

# Participles; a plus sign: the perfect is made with sein.
PARTICIPLES = """
mögen gemocht, kennen gekannt, essen gegessen, fressen gefressen, waschen gewaschen,
trinken getrunken, sehen gesehen, finden gefunden, tragen getragen, lesen gelesen,
schreiben geschrieben, ein-laden eingeladen, an-rufen angerufen, helfen geholfen,
geben gegeben, bringen gebracht, schlafen geschlafen, sitzen gesessen,
stehen gestanden, singen gesungen, haben gehabt, wollen gewollt, backen gebacken,
schneiden geschnitten, schließen geschlossen, verlieren verloren,
vergessen vergessen, nehmen genommen, werfen geworfen, fangen gefangen,
halten gehalten, ziehen gezogen, schieben geschoben, stehlen gestohlen,
treffen getroffen, folgen +gefolgt, verstehen verstanden, gewinnen gewonnen,
reiten +geritten, beißen gebissen, an-sehen angesehen, bleiben +geblieben,
liegen gelegen, schwimmen +geschwommen, springen +gesprungen, schreien geschrien,
gehen +gegangen, kommen +gekommen, laufen +gelaufen, fahren +gefahren,
fliegen +geflogen, reisen +gereist, auf-stehen +aufgestanden, auf-wachen +aufgewacht,
ein-schlafen +eingeschlafen, an-kommen +angekommen, fallen +gefallen,
sterben +gestorben, denken gedacht, bellen gebellt, sprechen gesprochen
"""

ADJECTIVES = """
good | gut | food drink thing text person idea
bad | schlecht | food drink text idea
pretty | hübsch | child animal thing clothes
ugly | hässlich | thing clothes animal
strong | stark | person animal drink
weak | schwach | person animal
fast | schnell | animal thing
slow | langsam | animal thing
short | kurz | text clothes idea
tall | groß | person child
fat | dick | animal person
thin | dünn | animal person
heavy | schwer | thing
light | leicht | thing
rich | reich | person
poor | arm | person child
lazy | faul | person child animal
brave | mutig | person child animal
funny | lustig | person child animal text
sad | traurig | person child animal text
angry | wütend | person child animal
sick | krank | person child animal
healthy | gesund | person child animal food
thirsty | durstig | person child animal
loud | laut | person child animal thing
quiet | ruhig | person child animal place
clean | sauber | thing clothes place body
dirty | schmutzig | thing clothes place body
wet | nass | thing clothes animal
dry | trocken | thing clothes
warm | warm | food drink thing clothes
empty | leer | thing place
full | voll | thing
closed | geschlossen | place
broken | kaputt | thing
yellow | gelb | fruit thing clothes
gray | grau | thing clothes animal
golden | golden | thing
round | rund | thing fruit
dark | dunkel dunkl | place idea
bright | hell | place nature
deep | tief | nature
soft | weich | thing clothes
hard | hart | thing
interesting | interessant | text person idea place
boring | langweilig | text person place
important | wichtig | text person idea
easy | einfach | text
difficult | schwierig | text
famous | berühmt | person text
strange | seltsam | person animal text idea
dangerous | gefährlich | animal nature person
wild | wild | animal
polite | höflich | person child
rude | unhöflich | person child
stupid | dumm | person animal idea
crazy | verrückt | person animal idea
bitter | bitter | food drink
salty | salzig | food
modern | modern | thing place
wonderful | wunderbar | text thing idea nature
terrible | schrecklich | text idea
perfect | perfekt | idea thing
wrong | falsch | text
right | richtig | text
proud | stolz | person child
nervous | nervös | person child animal
lonely | einsam | person child animal
curious | neugierig | person child animal
huge | riesig | animal thing nature place
tiny | winzig | animal thing
cute | süß | animal child
busy | beschäftigt | person
modest | bescheiden | person
nice | nett | person child animal
calm | gelassen | person
"""
NAMES = """
Bobby Anna Lena Paul Emma Tom Mia Max Peter Maria John Mary Sarah David Lisa Michael
Julia Alice Bob Ben Laura Jack
"""
WOMEN = "Anna Lena Emma Mia Maria Mary Sarah Lisa Julia Alice Laura"
FEMALE = """
woman queen aunt grandmother girl princess mother sister daughter wife lady witch
"""
NUMBERS = {
    "two": "zwei",
    "three": "drei",
    "four": "vier",
    "five": "fünf",
    "six": "sechs",
    "seven": "sieben",
    "eight": "acht",
    "nine": "neun",
    "ten": "zehn",
    "twelve": "zwölf",
}
COUNTRIES = """
Germany Deutschland, France Frankreich, England England, Spain Spanien, Italy Italien,
Austria Österreich, America Amerika, China China, Japan Japan, Europe Europa,
Berlin Berlin, London London, Paris Paris, Rome Rom, Vienna Wien, Munich München
"""
LANGUAGES = {
    "English": "Englisch",
    "German": "Deutsch",
    "French": "Französisch",
    "Spanish": "Spanisch",
    "Italian": "Italienisch",
}

# In the middle of an English sentence; German: behind the verb
OFTEN = {
    "often": "oft",
    "always": "immer",
    "never": "nie",
    "sometimes": "manchmal",
    "also": "auch",
    "already": "schon",
    "still": "noch",
}
# At the end of an English sentence; the tenses that they go with
LATE = [
    ("today", "heute", "present progressive future past"),
    ("now", "jetzt", "present progressive"),
    ("tomorrow", "morgen", "future"),
    ("yesterday", "gestern", "past"),
    ("every day", "jeden Tag", "present"),
    ("tonight", "heute Abend", "future"),
    ("in the morning", "am Morgen", "present past"),
    ("in the evening", "am Abend", "present past"),
    ("on Sunday", "am Sonntag", "future past"),
    ("on Monday", "am Montag", "future past"),
    ("last week", "letzte Woche", "past"),
    ("again", "wieder", "present past future"),
]
HERE = {
    "here": "hier",
    "there": "dort",
    "at home": "zu Hause",
    "outside": "draußen",
}
REPORTS = [
    ("I think", "Ich glaube"),
    ("I believe", "Ich glaube"),
    ("He thinks", "Er glaubt"),
    ("She thinks", "Sie glaubt"),
    ("We think", "Wir glauben"),
    ("Do you know", "Weißt du"),
    ("Do you think", "Glaubst du"),
]

# What is said as a whole
SAYINGS = """
Hello. | Hallo.
Hi. | Hallo.
Hello world. | Hallo Welt.
Good morning. | Guten Morgen.
Good evening. | Guten Abend.
Good night. | Gute Nacht.
Good day. | Guten Tag.
Goodbye. | Auf Wiedersehen.
Bye. | Tschüss.
Thank you. | Danke.
Thanks. | Danke.
Thank you very much. | Vielen Dank.
Please. | Bitte.
Yes. | Ja.
No. | Nein.
Yes please. | Ja, bitte.
No thank you. | Nein, danke.
Maybe. | Vielleicht.
Of course. | Natürlich.
Sorry. | Entschuldigung.
Excuse me. | Entschuldigung.
I am sorry. | Es tut mir leid.
Welcome. | Willkommen.
Good luck. | Viel Glück.
Happy birthday. | Alles Gute zum Geburtstag.
Help. | Hilfe.
How are you? | Wie geht es dir?
How are you today? | Wie geht es dir heute?
I am fine. | Mir geht es gut.
I am well. | Mir geht es gut.
What is your name? | Wie heißt du?
Who are you? | Wer bist du?
How old are you? | Wie alt bist du?
Where are you from? | Woher kommst du?
Where do you live? | Wo wohnst du?
What time is it? | Wie spät ist es?
What are you doing? | Was machst du?
What do you do? | Was machst du?
What do you want? | Was willst du?
What is that? | Was ist das?
What is this? | Was ist das?
Who is that? | Wer ist das?
Who is this? | Wer ist das?
How much is it? | Wie viel kostet es?
How much does it cost? | Wie viel kostet es?
I know. | Ich weiß.
I do not know. | Ich weiß nicht.
I understand. | Ich verstehe.
I do not understand. | Ich verstehe nicht.
I am cold. | Mir ist kalt.
I am hot. | Mir ist heiß.
You are cold. | Dir ist kalt.
You are hot. | Dir ist heiß.
He is cold. | Ihm ist kalt.
He is hot. | Ihm ist heiß.
She is cold. | Ihr ist kalt.
She is hot. | Ihr ist heiß.
We are cold. | Uns ist kalt.
We are hot. | Uns ist heiß.
They are cold. | Ihnen ist kalt.
They are hot. | Ihnen ist heiß.
Are you cold? | Ist dir kalt?
Are you hot? | Ist dir heiß?
It is raining. | Es regnet.
It is snowing. | Es schneit.
It rains. | Es regnet.
It is cold. | Es ist kalt.
It is hot. | Es ist heiß.
It is warm. | Es ist warm.
It is late. | Es ist spät.
Nice to meet you. | Freut mich.
See you tomorrow. | Bis morgen.
See you later. | Bis später.
Can you help me? | Kannst du mir helfen?
I need help. | Ich brauche Hilfe.
How is the weather? | Wie ist das Wetter?
Let us go. | Gehen wir.
Where is the toilet? | Wo ist die Toilette?
I like you. | Ich mag dich.
I love you. | Ich liebe dich.
I do not like it. | Ich mag es nicht.
I like it. | Ich mag es.
Come here. | Komm her.
Go home. | Geh nach Hause.
I am going home. | Ich gehe nach Hause.
I go home. | Ich gehe nach Hause.
I want to go home. | Ich will nach Hause gehen.
""".strip()
