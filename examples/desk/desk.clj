(ns desk
  "The support desk: tickets are files, customers are kept by the memory server."
  {:visibility :prompt})

(def states ["open" "closed"])

(defn- must
  "The value of a call that went well; whatever else ends the program."
  [res]
  (if (:ok res) (:value res) (fail (select-keys res [:reason :message]))))

(defn- read-json [path]
  (json/parse-string (must (tool/call {:server "files" :tool "read_text_file" :args {:path path}}))))

(defn- file-names [folder]
  (let [listed (must (tool/call {:server "files" :tool "list_directory" :args {:path folder}}))]
    (->> (str/split-lines listed)
         (keep #(second (re-find #"^\[FILE\] (.+\.json)$" %)))
         sort)))

(defn- ticket [file]
  (let [{:strs [subject customer opened state]} (read-json (str "tickets/" file))]
    {:id (str/replace file ".json" "") :subject subject :customer customer :opened opened :state state}))

(defn- facts
  "[\"plan: pro\"] as {:plan \"pro\"}."
  [observations]
  (into {} (map #(let [[key value] (str/split % #": " 2)] [(keyword key) value]) observations)))

(defn tickets
  "Tickets of a state (one of desk/states), the oldest first: [{:id :subject :customer :opened :state}]."
  [state]
  (->> (pmap ticket (file-names "tickets"))
       (filter #(= state (:state %)))
       (sort-by :opened)
       vec))

(defn customer
  "What is known of a customer: {:name :plan :since …}; nil for a stranger."
  [name]
  (let [found (must (tool/call {:server "memory" :tool "open_nodes" :args {:names [name]}}))
        entity (first (get found "entities"))]
    (when entity
      (assoc (facts (get entity "observations")) :name name))))

(defn waiting
  "Open tickets of customers with this plan (\"pro\", \"free\"), the oldest first."
  [plan]
  (let [open (tickets "open")
        names (distinct (map :customer open))
        plans (zipmap names (pmap #(:plan (customer %)) names))]
    (filterv #(= plan (get plans (:customer %))) open)))

(defn note!
  "Writes down a fact about a customer, as \"city: Oslo\"; ends the program when that fails."
  {:effect :write :visibility :discoverable}
  [name fact]
  (must (tool/call {:server "memory" :tool "add_observations"
                    :args {:observations [{:entityName name :contents [fact]}]}}))
  fact)
