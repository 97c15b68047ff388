(ns crm
  "CRM helpers."              ; what the namespace is for
  {:visibility :prompt})

(def page-size 50)            ; a constant export

(defn- normalize-id           ; a helper that programs do not see
  "Trim and tag a raw id."
  [raw]
  (str "norm:" raw))

(defn get-user
  "Return a CRM user by id."
  [id]
  (tool/call {:server "crm" :tool "get_user" :args {:id (normalize-id id)}}))

(defn get-user!
  "Return a CRM user, or abort the program."
  [id]
  (let [res (get-user id)]
    (if (res :ok) (res :value) (fail {:reason (res :reason)}))))

(defn list-users
  "List CRM users."
  {:visibility :discoverable}
  []
  (tool/call {:server "crm" :tool "list_users" :args {}}))

(defn search
  "Search users."
  {:provider-ref "upstream:crm/search" :effect :read
   :requires ["upstream:crm/search"]}
  [query]
  (tool/call {:server "crm" :tool "search" :args {:name query}}))
